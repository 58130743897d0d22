package postgres

import (
	"go.opentelemetry.io/otel/attribute"

	"earshot/internal/telemetry"
)

// measurePool adds the connection pool to the metrics of the process.
func (d *DB) measurePool(m telemetry.Meter) {
	m.Gauge("earshot_database_connections", "Connections of the pool.", func(set telemetry.Set) {
		now := d.pool.Stat()
		set(float64(now.AcquiredConns()), attribute.String("state", "in_use"))
		set(float64(now.IdleConns()), attribute.String("state", "idle"))
	})
	m.Gauge("earshot_database_connections_max", "Connections that the pool may have.", func(set telemetry.Set) {
		set(float64(d.pool.Stat().MaxConns()))
	})
	m.CounterOf("earshot_database_acquires", "Connections that were taken from the pool.", func(set telemetry.Set) {
		set(float64(d.pool.Stat().AcquireCount()))
	})
	m.CounterOf("earshot_database_waits", "Times that somebody waited for a connection of the pool.", func(set telemetry.Set) {
		set(float64(d.pool.Stat().EmptyAcquireCount()))
	})
	m.CounterOf("earshot_database_wait_seconds", "Time that was spent waiting for connections of the pool.", func(set telemetry.Set) {
		set(d.pool.Stat().EmptyAcquireWaitTime().Seconds())
	})
}
