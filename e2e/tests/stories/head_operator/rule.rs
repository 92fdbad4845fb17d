//! What a story's namespace does not take for a while.

use kubewake_e2e::{TracedCluster, wait_until};

/// A ValidatingAdmissionPolicy for one namespace.
pub(super) struct Rule<'a> {
    traced: &'a TracedCluster,
    name: String,
}

impl<'a> Rule<'a> {
    /// Refuses these resources (`group`, `plural`) in these words unless this is so, once a command that only
    /// tries one is refused.
    pub(super) fn of(
        traced: &'a TracedCluster,
        (group, plural): (&str, &str),
        so: &str,
        words: &str,
        tries: &str,
    ) -> Self {
        let kubectl = &traced.kubectl;
        let name = traced.kubectl.cluster().unique_name();
        let namespace = kubectl.namespace();
        let policy = format!(
            r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules:
    - {{apiGroups: ["{group}"], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [{plural}]}}
  validations:
  - {{expression: "{so}", message: {words}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"#
        );
        let rule = Self { traced, name };
        kubectl.run_ok_with("apply -f -", &policy);
        wait_until("the rule is in force", || kubectl.run(tries, "").stderr.contains(words));
        rule
    }

    /// No pod can be made, so that nothing becomes ready.
    pub(super) fn no_pods(traced: &'a TracedCluster) -> Self {
        Self::of(traced, ("", "pods"), "false", "no pods for now", "run x --image busybox --dry-run=server")
    }

    /// From now on they are taken.
    pub(super) fn lift(self) {
        drop(self);
    }
}

impl Drop for Rule<'_> {
    /// It is in no namespace, and would stay on somebody's cluster when a story fails.
    fn drop(&mut self) {
        for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
            let done = self.traced.kubectl.run(&format!("delete --ignore-not-found {kind} {}", self.name), "");
            assert!(done.code == 0 || std::thread::panicking(), "{}", done.stderr);
        }
    }
}
