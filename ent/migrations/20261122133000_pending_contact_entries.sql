-- +goose Up
-- As for posts: a contact has some sixty numbers that it is searched by, and each went into
-- the index by itself. The list is four times as long, because it holds fewer rows.
ALTER INDEX "contact_documents_grams" SET (fastupdate = on, gin_pending_list_limit = 256);

-- +goose Down
ALTER INDEX "contact_documents_grams" RESET (gin_pending_list_limit);
ALTER INDEX "contact_documents_grams" SET (fastupdate = off);
