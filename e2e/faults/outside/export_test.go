package outside

// Differing returns the first rows in which a copy differs from a list.
var Differing = differing
