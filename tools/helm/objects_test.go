package helm_test

import (
	"fmt"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// types are the types of the chart's objects. KEDA's module would add hundreds of others, so its
// objects are checked against its published schemas instead.
var types = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return new(appsv1.Deployment) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"batch/v1 Job":                            func() any { return new(batchv1.Job) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoringv1.ServiceMonitor) },
	"networking.k8s.io/v1 Ingress":            func() any { return new(networkingv1.Ingress) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"v1 Service":                              func() any { return new(corev1.Service) },
	"keda.sh/v1alpha1 ScaledObject":           nil,
	"keda.sh/v1alpha1 TriggerAuthentication":  nil,
}

// check checks that Kubernetes would accept a whole release, and that the release has the
// properties that the chart promises.
func check(t *testing.T, objects []rendered) {
	t.Helper()
	seen := map[string]bool{}
	var pods []labels.Set
	for _, o := range objects {
		where := o.APIVersion + " " + o.Kind + " " + o.Metadata.Name
		require.False(t, seen[where], "%s is there twice", where)
		seen[where] = true
		checkMeta(t, where, o.Metadata)

		kind, known := types[o.APIVersion+" "+o.Kind]
		require.True(t, known, "the chart writes a kind that nobody looks at: %s", where)
		if kind == nil {
			checkKEDA(t, o)
			continue
		}
		into := kind()
		require.NoError(t, yaml.UnmarshalStrict(o.yaml, into), "%s:\n%s", where, o.yaml)
		switch into := into.(type) {
		case *appsv1.Deployment:
			checkPod(t, where, into.Spec.Template)
			pods = append(pods, into.Spec.Template.Labels)
			require.True(t, matches(t, into.Spec.Selector, into.Spec.Template.Labels), "%s selects its pods", where)
		case *batchv1.Job:
			checkPod(t, where, into.Spec.Template)
			pods = append(pods, into.Spec.Template.Labels)
			checkHook(t, where, into.ObjectMeta, into.Spec.Template.Spec)
		}
	}
	checkSelectors(t, objects, pods)
	checkReferences(t, objects)
}

func checkMeta(t *testing.T, where string, meta metav1.ObjectMeta) {
	t.Helper()
	// Names also become labels of pods, which have at most 63 characters.
	require.Empty(t, validation.IsDNS1123Label(meta.Name), where)
	require.Empty(t, metavalidation.ValidateLabels(meta.Labels, field.NewPath("labels")), where)
	for key := range meta.Annotations {
		require.Empty(t, validation.IsQualifiedName(strings.ToLower(key)), where)
	}
}

// checkPod checks a pod against Kubernetes' "restricted" security standard.
func checkPod(t *testing.T, where string, pod corev1.PodTemplateSpec) {
	t.Helper()
	checkMeta(t, where, metav1.ObjectMeta{Name: "pod", Labels: pod.Labels, Annotations: pod.Annotations})
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		require.True(t, result.Allowed, "%s: %s %s", where, result.ForbiddenReason, result.ForbiddenDetail)
	}
	require.False(t, *pod.Spec.AutomountServiceAccountToken, where)
	require.False(t, *pod.Spec.EnableServiceLinks, where)
	require.Positive(t, *pod.Spec.SecurityContext.RunAsUser, where)
	for _, c := range pod.Spec.Containers {
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, where)
		require.NotEmpty(t, c.Resources.Limits.Memory(), where)
		checkEnvironment(t, where, c)
		for _, port := range c.Ports {
			require.Empty(t, validation.IsValidPortName(port.Name), where)
		}
	}
}

// checkEnvironment checks that no variable is set twice, because Kubernetes would silently use the
// last value. It also checks that no pod description contains a secret.
func checkEnvironment(t *testing.T, where string, c corev1.Container) {
	t.Helper()
	set := map[string]bool{}
	for _, variable := range c.Env {
		require.False(t, set[variable.Name], "%s sets %s twice", where, variable.Name)
		set[variable.Name] = true
		for _, secret := range []string{"DATABASE_URL", "EARSHOT_SECRET_KEYS", "EARSHOT_EMAIL_HASH_KEY", "EARSHOT_SMTP_URL", "TEMPORAL_API_KEY"} {
			require.NotEqual(t, secret, variable.Name, where)
		}
	}
}

// checkHook checks that leftovers of an upgrade don't block the next one. It also checks that a
// first installation needs no object that is created after the hooks.
func checkHook(t *testing.T, where string, meta metav1.ObjectMeta, pod corev1.PodSpec) {
	t.Helper()
	require.Equal(t, "pre-install,pre-upgrade", meta.Annotations["helm.sh/hook"], where)
	require.Equal(t, "before-hook-creation,hook-succeeded", meta.Annotations["helm.sh/hook-delete-policy"], where)
	require.Empty(t, pod.ServiceAccountName, "%s: no example makes one", where)
}

func matches(t *testing.T, selector *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	require.False(t, s.Empty(), "a selector that takes every pod of the namespace")
	return s.Matches(set)
}

// checkSelectors checks that every selector selects pods, and that no two Deployments select the
// same pods.
// want the same.
func checkSelectors(t *testing.T, objects []rendered, pods []labels.Set) {
	t.Helper()
	count := func(where string, selector *metav1.LabelSelector) (n int) {
		for _, pod := range pods {
			if matches(t, selector, pod) {
				n++
			}
		}
		require.Positive(t, n, "%s selects no pod", where)
		return n
	}
	for name, o := range pick[appsv1.Deployment](t, objects, "Deployment") {
		require.Equal(t, 1, count(name, o.Spec.Selector), name)
		for _, spread := range o.Spec.Template.Spec.TopologySpreadConstraints {
			require.Equal(t, 1, count(name, spread.LabelSelector), name)
		}
	}
	for name, o := range pick[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget") {
		count(name, o.Spec.Selector)
	}
	for name, o := range pick[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy") {
		count(name, &o.Spec.PodSelector)
	}
	for name, o := range pick[corev1.Service](t, objects, "Service") {
		count(name, &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
	}
}

// checkReferences checks that every reference to an object of the release has a target.
func checkReferences(t *testing.T, objects []rendered) {
	t.Helper()
	deployments := pick[appsv1.Deployment](t, objects, "Deployment")
	services := pick[corev1.Service](t, objects, "Service")
	scaled := map[string]string{}
	for name, o := range pick[autoscalingv2.HorizontalPodAutoscaler](t, objects, "HorizontalPodAutoscaler") {
		require.Equal(t, o.Name, o.Spec.ScaleTargetRef.Name)
		scaled[name] = "HorizontalPodAutoscaler"
	}
	for name, o := range pick[scaledObject](t, objects, "ScaledObject") {
		require.Equal(t, o.Metadata.Name, o.Spec.ScaleTargetRef.Name)
		require.Empty(t, scaled[name], "%s has two masters", name)
		scaled[name] = "ScaledObject"
	}
	for name := range scaled {
		require.Contains(t, deployments, name)
	}
	for name, o := range deployments {
		require.Equal(t, scaled[name] == "", o.Spec.Replicas != nil, "%s: the count has one owner", name)
	}
	for name, o := range pick[networkingv1.Ingress](t, objects, "Ingress") {
		require.NotEmpty(t, o.Spec.Rules, name)
		for _, rule := range o.Spec.Rules {
			backend := rule.HTTP.Paths[0].Backend.Service
			require.Contains(t, services, backend.Name)
			require.Equal(t, "http", backend.Port.Name)
		}
	}
	for name, o := range pick[monitoringv1.ServiceMonitor](t, objects, "ServiceMonitor") {
		found := 0
		for _, service := range services {
			if matches(t, &o.Spec.Selector, service.Labels) {
				found++
				require.Equal(t, o.Spec.Endpoints[0].Port, service.Spec.Ports[0].Name)
			}
		}
		require.Equal(t, 1, found, fmt.Sprintf("%s reads one service", name))
	}
}
