// Package helm has no code: its tests render deploy/helm/earshot and hold every object
// against the types of Kubernetes. The module has Helm and helm-unittest for `make chart`.
package helm
