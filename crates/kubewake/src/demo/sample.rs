//! The samples: what has to be there, what is applied, and what is changed the next time. Pure.

use serde_json::{Value, json};

use crate::manifest_applier;

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DemoSample {
    /// A Head with two children (examples/head-operator)
    Head,
    /// A scheduler and its configuration (examples/scheduler)
    Scheduler,
}

/// The score plugin that comes and goes.
const TOGGLED_PLUGIN: &str = "NodeLabel";
/// Where the second child says how many pods it wants.
const REPLICAS_POINTER: &str = "/spec/children/1/template/replicas";
/// It has so many at most: everybody's machine bears that.
const MAX_REPLICAS: u64 = 3;

impl DemoSample {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Head, Self::Scheduler];

    /// The kinds and the operator.
    pub(crate) fn manifests(self) -> anyhow::Result<Vec<Value>> {
        let files = match self {
            Self::Head => [
                include_str!("../../../../examples/head-operator/deploy/crds.yaml"),
                include_str!("../../../../examples/head-operator/deploy/operator.yaml"),
            ],
            Self::Scheduler => [
                include_str!("../../../../examples/scheduler/deploy/crds.yaml"),
                include_str!("../../../../examples/scheduler/deploy/operator.yaml"),
            ],
        };
        manifest_applier::parse_manifest(&files.join("---\n"))
    }

    /// The namespace and the name of the operator's Deployment.
    pub(crate) fn operator(self) -> (&'static str, &'static str) {
        match self {
            Self::Head => ("head-system", "head-operator"),
            Self::Scheduler => ("scheduler-system", "scheduler-operator"),
        }
    }

    /// The namespace and the name of the sample.
    pub(crate) fn namespace_and_name(self) -> (&'static str, &'static str) {
        match self {
            Self::Head => ("default", "sample"),
            Self::Scheduler => ("scheduler-system", "demo"),
        }
    }

    /// What it is called in messages.
    pub(crate) fn title(self) -> String {
        let (namespace, name) = self.namespace_and_name();
        format!("{} {namespace}/{name}", self.kind())
    }

    /// The span that says that it is ready.
    pub(crate) fn converge_span_name(self) -> &'static str {
        match self {
            Self::Head => "converge Head",
            Self::Scheduler => "converge Scheduler",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Head => "Head",
            Self::Scheduler => "Scheduler",
        }
    }

    /// As it is in the folder of its example.
    pub(crate) fn object(self) -> anyhow::Result<Value> {
        let text = match self {
            Self::Head => include_str!("../../../../examples/head-operator/deploy/sample.yaml"),
            Self::Scheduler => include_str!("../../../../examples/scheduler/deploy/sample.yaml"),
        };
        let mut object: Value = serde_saphyr::from_str(text)?;
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.insert("namespace".to_owned(), self.namespace_and_name().0.into());
        }
        Ok(object)
    }

    /// What to apply where this is the spec now, and what that changes, in words.
    pub(crate) fn next_change(self, now: Option<&Value>) -> anyhow::Result<(Value, String)> {
        let mut object = self.object()?;
        let Some(now) = now else { return Ok((object, "is new".to_owned())) };
        let what = match self {
            Self::Head => {
                let replicas = now.pointer(REPLICAS_POINTER).and_then(Value::as_u64).unwrap_or(1) % MAX_REPLICAS + 1;
                if let Some(field) = object.pointer_mut(REPLICAS_POINTER) {
                    *field = json!(replicas);
                }
                format!("is changed: child right has {replicas} {}", if replicas == 1 { "pod" } else { "pods" })
            }
            Self::Scheduler if now.to_string().contains(TOGGLED_PLUGIN) => {
                "is changed: nodes with more free resources are preferred".to_owned()
            }
            Self::Scheduler => {
                if let Some(Value::Array(scores)) = object.pointer_mut("/spec/scores") {
                    scores.push(json!({"name": TOGGLED_PLUGIN, "weight": 5, "label": "disk=ssd"}));
                }
                "is changed: nodes with the label disk=ssd are preferred".to_owned()
            }
        };
        Ok((object, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_it_is_as_in_its_example() {
        for sample in DemoSample::ALL {
            let (object, what) = sample.next_change(None).unwrap();
            assert_eq!((object.clone(), what.as_str()), (sample.object().unwrap(), "is new"));
            let (namespace, name) = sample.namespace_and_name();
            assert_eq!(object["metadata"], json!({"name": name, "namespace": namespace}));
            assert_eq!(object["kind"], sample.kind());
        }
    }

    #[test]
    fn each_further_time_it_is_another_one() {
        for sample in DemoSample::ALL {
            let mut now = sample.object().unwrap();
            for _ in 0..4 {
                let (next, what) = sample.next_change(Some(&now)).unwrap();
                assert_ne!(next["spec"], now["spec"]);
                assert!(what.starts_with("is changed"), "{what}");
                now = next;
            }
        }
    }

    #[test]
    fn a_head_that_somebody_changed_stays_within_bounds() {
        let mut now = DemoSample::Head.object().unwrap();
        now["spec"]["children"][1]["template"]["replicas"] = json!(40);
        let (next, _) = DemoSample::Head.next_change(Some(&now)).unwrap();
        assert_eq!(next.pointer(REPLICAS_POINTER), Some(&json!(2)));
    }

    #[test]
    fn the_operators_are_in_their_manifests() {
        for sample in DemoSample::ALL {
            let mut manifests = sample.manifests().unwrap();
            let (namespace, name) = sample.operator();
            let deployment = manifest_applier::find_deployment(&mut manifests, name).unwrap();
            assert_eq!(deployment["metadata"]["namespace"], namespace);
        }
    }
}
