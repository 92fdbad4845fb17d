//! The samples: what has to be there, what is applied, and what is changed the next time. Pure.

use serde_json::{Value, json};

use crate::objects;

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sample {
    /// A Head with two children: examples/head-operator
    Head,
    /// A scheduler and its configuration: examples/scheduler
    Scheduler,
}

/// The score plugin that comes and goes.
const LABELLED: &str = "NodeLabel";
/// Where the second child says how many pods it wants.
const REPLICAS: &str = "/spec/children/1/template/replicas";
/// It has so many at most: everybody's machine bears that.
const MOST: u64 = 3;

impl Sample {
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
        objects::parse(&files.join("---\n"))
    }

    /// The namespace and the name of the operator's Deployment.
    pub(crate) fn operator(self) -> (&'static str, &'static str) {
        match self {
            Self::Head => ("head-system", "head-operator"),
            Self::Scheduler => ("scheduler-system", "scheduler-operator"),
        }
    }

    /// The namespace and the name of the sample.
    pub(crate) fn place(self) -> (&'static str, &'static str) {
        match self {
            Self::Head => ("default", "sample"),
            Self::Scheduler => ("scheduler-system", "demo"),
        }
    }

    /// What it is called in messages.
    pub(crate) fn title(self) -> String {
        let (namespace, name) = self.place();
        format!("{} {namespace}/{name}", self.kind())
    }

    /// The span that says that it is ready.
    pub(crate) fn converge(self) -> &'static str {
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
            metadata.insert("namespace".to_owned(), self.place().0.into());
        }
        Ok(object)
    }

    /// What to apply where this is the spec now, and what that changes, in words.
    pub(crate) fn next(self, now: Option<&Value>) -> anyhow::Result<(Value, String)> {
        let mut object = self.object()?;
        let Some(now) = now else { return Ok((object, "is new".to_owned())) };
        let what = match self {
            Self::Head => {
                let replicas = now.pointer(REPLICAS).and_then(Value::as_u64).unwrap_or(1) % MOST + 1;
                if let Some(field) = object.pointer_mut(REPLICAS) {
                    *field = json!(replicas);
                }
                format!("is changed: its child right wants {replicas} {}", if replicas == 1 { "pod" } else { "pods" })
            }
            Self::Scheduler if now.to_string().contains(LABELLED) => {
                "is changed: nodes are chosen by the room that they have".to_owned()
            }
            Self::Scheduler => {
                if let Some(Value::Array(scores)) = object.pointer_mut("/spec/scores") {
                    scores.push(json!({"name": LABELLED, "weight": 5, "label": "disk=ssd"}));
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
        for sample in Sample::ALL {
            let (object, what) = sample.next(None).unwrap();
            assert_eq!((object.clone(), what.as_str()), (sample.object().unwrap(), "is new"));
            let (namespace, name) = sample.place();
            assert_eq!(object["metadata"], json!({"name": name, "namespace": namespace}));
            assert_eq!(object["kind"], sample.kind());
        }
    }

    #[test]
    fn each_further_time_it_is_another_one() {
        for sample in Sample::ALL {
            let mut now = sample.object().unwrap();
            for _ in 0..4 {
                let (next, what) = sample.next(Some(&now)).unwrap();
                assert_ne!(next["spec"], now["spec"]);
                assert!(what.starts_with("is changed"), "{what}");
                now = next;
            }
        }
    }

    #[test]
    fn a_head_that_somebody_changed_stays_within_bounds() {
        let mut now = Sample::Head.object().unwrap();
        now["spec"]["children"][1]["template"]["replicas"] = json!(40);
        let (next, _) = Sample::Head.next(Some(&now)).unwrap();
        assert_eq!(next.pointer(REPLICAS), Some(&json!(2)));
    }

    #[test]
    fn the_operators_are_in_their_manifests() {
        for sample in Sample::ALL {
            let mut manifests = sample.manifests().unwrap();
            let (namespace, name) = sample.operator();
            let deployment = objects::deployment(&mut manifests, name).unwrap();
            assert_eq!(deployment["metadata"]["namespace"], namespace);
        }
    }
}
