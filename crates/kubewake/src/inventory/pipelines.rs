//! Pipelines as the API server returns them.

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
};
use kubewake_api::v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline};
use serde_json::Value;

use super::text_at_pointer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstalledPipelineKind {
    Traces,
    Logs,
    Metrics,
}

#[derive(Clone, Debug)]
pub(crate) struct InstalledPipeline {
    pub(crate) kind: InstalledPipelineKind,
    pub(crate) name: String,
    pub(crate) object: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PipelineCondition {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl InstalledPipelineKind {
    pub(crate) const ALL: [Self; 3] = [Self::Traces, Self::Logs, Self::Metrics];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Traces => "tracepipeline",
            Self::Logs => "logpipeline",
            Self::Metrics => "metricpipeline",
        }
    }

    /// The signal as configurations name it.
    fn signal(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Logs => "logs",
            Self::Metrics => "metrics",
        }
    }

    fn api_resource(self) -> ApiResource {
        match self {
            Self::Traces => ApiResource::erase::<TracePipeline>(&()),
            Self::Logs => ApiResource::erase::<LogPipeline>(&()),
            Self::Metrics => ApiResource::erase::<MetricPipeline>(&()),
        }
    }
}

impl InstalledPipeline {
    /// The id in configurations and collectors: `traces/backend`.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.kind.signal(), self.name)
    }

    /// The uid, which tells the pipeline from earlier ones of the same name.
    pub(crate) fn uid(&self) -> String {
        text_at_pointer(&self.object, "/metadata/uid")
    }

    /// The name in messages: `tracepipeline/backend`.
    pub(crate) fn display_name(&self) -> String {
        format!("{}/{}", self.kind.name(), self.name)
    }

    /// A text field of its status.
    pub(crate) fn status(&self, field: &str) -> String {
        text_at_pointer(&self.object, &format!("/status/{field}"))
    }

    /// Data that collectors could not deliver before they ended.
    pub(crate) fn dropped_at_shutdown(&self) -> u64 {
        self.object.pointer("/status/droppedAtShutdown/items").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Whether its status is about the current generation.
    pub(crate) fn is_observed(&self) -> bool {
        let observed = self.object.pointer("/status/observedGeneration");
        observed.is_some() && observed == self.object.pointer("/metadata/generation")
    }

    /// Whether `spec.paused` stops it.
    pub(crate) fn is_paused(&self) -> bool {
        self.object.pointer("/spec/paused").and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether its spec selects a part of the data.
    pub(crate) fn is_selective(&self) -> bool {
        ["input", "filter", "sampling"].iter().any(|field| self.object.pointer(&format!("/spec/{field}")).is_some())
    }

    pub(crate) fn conditions(&self) -> Vec<PipelineCondition> {
        let conditions = self.object.pointer("/status/conditions").and_then(Value::as_array);
        let condition = |it: &Value| PipelineCondition {
            name: text_at_pointer(it, "/type"),
            status: text_at_pointer(it, "/status"),
            reason: text_at_pointer(it, "/reason"),
            message: text_at_pointer(it, "/message"),
        };
        conditions.into_iter().flatten().map(condition).collect()
    }

    /// The message of the condition that determines its state.
    pub(crate) fn message(&self) -> String {
        let reason = self.status("reason");
        self.conditions().into_iter().find(|it| it.reason == reason).map(|it| it.message).unwrap_or_default()
    }

    /// A pipeline with this manifest.
    #[cfg(test)]
    pub(crate) fn example(kind: InstalledPipelineKind, object: Value) -> Self {
        Self { kind, name: text_at_pointer(&object, "/metadata/name"), object }
    }
}

/// The pipelines of all kinds, and the errors of the kinds that cannot be listed.
pub(crate) async fn list_pipelines(client: &Client) -> (Vec<InstalledPipeline>, Vec<kube::Error>) {
    let lists = futures_util::future::join_all(InstalledPipelineKind::ALL.map(|kind| list_kind(client, kind))).await;
    let mut pipelines = Vec::new();
    let mut errors = Vec::new();
    for listed in lists {
        match listed {
            Ok(listed) => pipelines.extend(listed),
            Err(error) => errors.push(error),
        }
    }
    (pipelines, errors)
}

async fn list_kind(client: &Client, kind: InstalledPipelineKind) -> Result<Vec<InstalledPipeline>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.api_resource());
    let list = api.list(&ListParams::default()).await?;
    let pipeline = |object: DynamicObject| InstalledPipeline {
        kind,
        name: object.metadata.name.clone().unwrap_or_default(),
        object: serde_json::to_value(object).unwrap_or_default(),
    };
    Ok(list.items.into_iter().map(pipeline).collect())
}

/// The Telemetry of the cluster, if there is one.
pub(crate) async fn fetch_telemetry(client: &Client) -> Result<Option<Value>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<Telemetry>(&()));
    Ok(api.get_opt("default").await?.map(|object| serde_json::to_value(object).unwrap_or_default()))
}
