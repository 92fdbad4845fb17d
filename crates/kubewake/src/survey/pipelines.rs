//! Pipelines, as the API server has them.

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
};
use kubewake_api::v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline};
use serde_json::Value;

use super::text;

/// A kind of pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Traces,
    Logs,
    Metrics,
}

/// A pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// All of it.
    pub(crate) object: Value,
}

/// One of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) name: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Traces, Self::Logs, Self::Metrics];

    /// `tracepipeline`
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Traces => "tracepipeline",
            Self::Logs => "logpipeline",
            Self::Metrics => "metricpipeline",
        }
    }

    /// As documents call its signal.
    fn signal(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Logs => "logs",
            Self::Metrics => "metrics",
        }
    }

    fn resource(self) -> ApiResource {
        match self {
            Self::Traces => ApiResource::erase::<TracePipeline>(&()),
            Self::Logs => ApiResource::erase::<LogPipeline>(&()),
            Self::Metrics => ApiResource::erase::<MetricPipeline>(&()),
        }
    }
}

impl Pipeline {
    /// What documents and collectors call it: `traces/backend`.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.kind.signal(), self.name)
    }

    /// Which one it is of all that have had its name.
    pub(crate) fn uid(&self) -> String {
        text(&self.object, "/metadata/uid")
    }

    /// What people call it: `tracepipeline/backend`.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.kind.name(), self.name)
    }

    /// A text of its status.
    pub(crate) fn status(&self, field: &str) -> String {
        text(&self.object, &format!("/status/{field}"))
    }

    /// What collectors held for it that ended before they could deliver it.
    pub(crate) fn dropped_at_shutdown(&self) -> u64 {
        self.object.pointer("/status/droppedAtShutdown/items").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Whether its status is about what is written now.
    pub(crate) fn is_observed(&self) -> bool {
        let observed = self.object.pointer("/status/observedGeneration");
        observed.is_some() && observed == self.object.pointer("/metadata/generation")
    }

    /// Whether nothing flows because it says so.
    pub(crate) fn is_paused(&self) -> bool {
        self.object.pointer("/spec/paused").and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether it says itself that it does not take everything.
    pub(crate) fn is_choosy(&self) -> bool {
        ["input", "filter", "sampling"].iter().any(|field| self.object.pointer(&format!("/spec/{field}")).is_some())
    }

    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let conditions = self.object.pointer("/status/conditions").and_then(Value::as_array);
        let condition = |it: &Value| Condition {
            name: text(it, "/type"),
            status: text(it, "/status"),
            reason: text(it, "/reason"),
            message: text(it, "/message"),
        };
        conditions.into_iter().flatten().map(condition).collect()
    }

    /// What decides about its state, in words.
    pub(crate) fn message(&self) -> String {
        let reason = self.status("reason");
        self.conditions().into_iter().find(|it| it.reason == reason).map(|it| it.message).unwrap_or_default()
    }

    /// One that is written down like this.
    #[cfg(test)]
    pub(crate) fn example(kind: Kind, object: Value) -> Self {
        Self { kind, name: text(&object, "/metadata/name"), object }
    }
}

/// The pipelines of all kinds; of those that cannot be listed, why.
pub(crate) async fn all(client: &Client) -> (Vec<Pipeline>, Vec<kube::Error>) {
    let lists = futures_util::future::join_all(Kind::ALL.map(|kind| list(client, kind))).await;
    let (mut pipelines, mut errors) = (Vec::new(), Vec::new());
    for listed in lists {
        match listed {
            Ok(listed) => pipelines.extend(listed),
            Err(error) => errors.push(error),
        }
    }
    (pipelines, errors)
}

async fn list(client: &Client, kind: Kind) -> Result<Vec<Pipeline>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    let list = api.list(&ListParams::default()).await?;
    let pipeline = |object: DynamicObject| Pipeline {
        kind,
        name: object.metadata.name.clone().unwrap_or_default(),
        object: serde_json::to_value(object).unwrap_or_default(),
    };
    Ok(list.items.into_iter().map(pipeline).collect())
}

/// The Telemetry of the cluster, if there is one.
pub(crate) async fn telemetry(client: &Client) -> Result<Option<Value>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<Telemetry>(&()));
    Ok(api.get_opt("default").await?.map(|object| serde_json::to_value(object).unwrap_or_default()))
}
