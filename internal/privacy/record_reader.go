package privacy

import (
	"earshot/ent/db"
	"earshot/ent/db/predicate"
	"earshot/ent/db/subjectrecord"
	"earshot/internal/page"
)

// listedSubjectRecord is a record of a personal data export.
type listedSubjectRecord struct {
	db.SubjectRecord
	page.Extent
	// Sealed replaces the entity's field, which Ent leaves out of JSON.
	Sealed []byte `json:"sealed"`
}

// subjectRecordPages reads pages of the records of an export.
var subjectRecordPages = page.NewReader[listedSubjectRecord, predicate.SubjectRecord](subjectrecord.Table,
	subjectrecord.Columns, []string{subjectrecord.FieldSealed})
