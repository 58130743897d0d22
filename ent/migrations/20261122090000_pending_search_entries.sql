-- +goose Up
-- By hand, as the indexes are. An insert writes each of its words into the index by itself, and
-- inserts of common words wait for each other's pages. With a list of what is pending they
-- share the work; the smallest limit, in kB, keeps short what a search reads through and
-- what one insert has to put away for those before it.
ALTER INDEX "post_documents_title" SET (fastupdate = on, gin_pending_list_limit = 64);
ALTER INDEX "post_documents_words" SET (fastupdate = on, gin_pending_list_limit = 64);

-- +goose Down
ALTER INDEX "post_documents_title" RESET (gin_pending_list_limit);
ALTER INDEX "post_documents_title" SET (fastupdate = off);
ALTER INDEX "post_documents_words" RESET (gin_pending_list_limit);
ALTER INDEX "post_documents_words" SET (fastupdate = off);
