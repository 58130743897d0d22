-- +goose Up
-- Some 290 contacts with an address share a turn of the index instead of 70, and make an eighth
-- less work. A search that looks through 1 MiB of the list takes a millisecond for it at most.
ALTER INDEX "contact_documents_grams" SET (gin_pending_list_limit = 1024);

-- +goose Down
ALTER INDEX "contact_documents_grams" SET (gin_pending_list_limit = 256);
