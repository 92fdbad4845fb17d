//! A kind with a spec and a status, and its controller.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::{
        authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec},
        core::v1::ConfigMap,
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, CustomResource, Resource as _, ResourceExt as _,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        controller::Action,
        events::{Event, EventType},
    },
};
use kubewake_trail::{Run, Trail, events::EventPublisher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "trail.test", version = "v1", kind = "Head", namespaced, status = "HeadStatus")]
#[serde(rename_all = "camelCase")]
pub struct HeadSpec {
    pub size: i32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeadStatus {
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// What the reconciler of the tests does.
pub struct Work {
    pub trail: Trail,
    pub client: Client,
    /// Runs that have ended.
    pub runs: AtomicU32,
    /// Runs that have begun.
    pub begun: AtomicU32,
    /// The last run of each Head that has ended, as a number of those that have begun.
    pub ended: Mutex<BTreeMap<String, u32>>,
    /// Runs fail.
    pub fails: AtomicBool,
    /// The child is one that the API server refuses.
    pub refused: AtomicBool,
    /// Runs publish an event and ask what they may do.
    pub talks: AtomicBool,
    pub events: EventPublisher,
    /// Runs change something that no client sees, and ask for another.
    pub busy: AtomicBool,
    /// Heads become ready.
    pub completes: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the API server refuses")]
    Api(#[from] kube::Error),
    #[error("it is broken")]
    Broken,
}

pub async fn reconcile(head: Arc<Head>, work: Arc<Work>) -> Result<Action, Error> {
    let number = work.begun.fetch_add(1, Ordering::SeqCst);
    let result = work.reconcile(&head).await;
    work.runs.fetch_add(1, Ordering::SeqCst);
    work.ended.lock().unwrap().insert(head.name_any(), number);
    result
}

pub fn error_policy(_: Arc<Head>, _: &Error, _: Arc<Work>) -> Action {
    Action::requeue(Duration::from_millis(1))
}

impl Work {
    async fn reconcile(&self, head: &Head) -> Result<Action, Error> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::Broken);
        }
        if self.busy.load(Ordering::SeqCst) {
            Run::current().unwrap().note_change();
            return Ok(Action::requeue(Duration::from_millis(1)));
        }
        let namespace = head.namespace().unwrap();
        let child = ConfigMap {
            metadata: ObjectMeta { name: Some(format!("{}-child", head.name_any())), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("size".to_owned(), head.spec.size.to_string())])),
            ..ConfigMap::default()
        };
        if self.talks.load(Ordering::SeqCst) {
            self.talk(head).await?;
        }
        let mut child = child;
        if self.refused.load(Ordering::SeqCst) {
            child.metadata.labels = Some(BTreeMap::from([("bad".to_owned(), "no value of a label!".to_owned())]));
        }
        let children = Api::namespaced(self.client.clone(), &namespace);
        self.trail.child(head).apply(&children, "head", child).await?;
        if self.completes.load(Ordering::SeqCst) {
            self.ready(head, &namespace).await?;
        }
        Ok(Action::await_change())
    }

    async fn talk(&self, head: &Head) -> Result<(), Error> {
        let event = Event {
            type_: EventType::Normal,
            reason: "Looked".to_owned(),
            note: None,
            action: "Look".to_owned(),
            secondary: None,
        };
        self.events.publish(&event, &head.object_ref(&())).await?;
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec { namespace: head.namespace() },
            ..SelfSubjectRulesReview::default()
        };
        Api::<SelfSubjectRulesReview>::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        Ok(())
    }

    async fn ready(&self, head: &Head, namespace: &str) -> Result<(), Error> {
        let condition = Condition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: "Done".to_owned(),
            message: String::new(),
            // The same in every run, also in one that does not see its own write yet.
            last_transition_time: head.metadata.creation_timestamp.clone().unwrap(),
            observed_generation: head.meta_generation(),
        };
        let patch = json!({"status": {"observedGeneration": head.meta_generation(), "conditions": [condition]}});
        let heads = Api::<Head>::namespaced(self.client.clone(), namespace);
        self.trail.patch_status(&heads, head, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }
}

impl Head {
    fn meta_generation(&self) -> Option<i64> {
        self.metadata.generation
    }
}
