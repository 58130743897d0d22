-- +goose Up
-- By hand, because Ent can't declare it. What the retention removes is dead rows until a vacuum
-- comes. With Postgres's own fifth of a table, thirty days of 1,000 deliveries a second would
-- gather half a billion of them first, for which it has to go through all indexes many times.
ALTER TABLE "deliveries" SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE "attempts" SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE "events" SET (autovacuum_vacuum_scale_factor = 0.05);

-- +goose Down
ALTER TABLE "events" RESET (autovacuum_vacuum_scale_factor);
ALTER TABLE "attempts" RESET (autovacuum_vacuum_scale_factor);
ALTER TABLE "deliveries" RESET (autovacuum_vacuum_scale_factor);
