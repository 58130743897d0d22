// Package helm contains only tests. They render deploy/helm/earshot and check every object against
// the types of Kubernetes. The module has Helm and helm-unittest for `make chart`.
package helm
