//! The parameters of operations.

use serde_json::{Value, json};

/// A parameter of a path or a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OperationParameter {
    name: &'static str,
    place: &'static str,
    of: &'static str,
}

const fn path(name: &'static str) -> OperationParameter {
    OperationParameter { name, place: "path", of: "string" }
}

const fn text(name: &'static str) -> OperationParameter {
    OperationParameter { name, place: "query", of: "string" }
}

const fn flag(name: &'static str) -> OperationParameter {
    OperationParameter { name, place: "query", of: "boolean" }
}

const fn number(name: &'static str) -> OperationParameter {
    OperationParameter { name, place: "query", of: "integer" }
}

pub(super) const NAME: OperationParameter = path("name");
pub(super) const NAMESPACE: OperationParameter = path("namespace");
/// The rest of the path, which a proxy forwards.
pub(super) const REST: OperationParameter = path("path");
pub(super) const PRETTY: OperationParameter = text("pretty");
pub(super) const RESOURCE_VERSION: OperationParameter = text("resourceVersion");
pub(super) const FORCE: OperationParameter = flag("force");

pub(super) const WRITE: [OperationParameter; 3] = [text("dryRun"), text("fieldManager"), text("fieldValidation")];
/// The parameters of operations on collections.
pub(super) const SELECT: [OperationParameter; 9] = [
    text("continue"),
    text("fieldSelector"),
    text("labelSelector"),
    number("limit"),
    RESOURCE_VERSION,
    text("resourceVersionMatch"),
    flag("sendInitialEvents"),
    text("shardSelector"),
    number("timeoutSeconds"),
];
/// The parameters of collections that can be watched.
pub(super) const WATCH: [OperationParameter; 2] = [flag("allowWatchBookmarks"), flag("watch")];
pub(super) const DELETE: [OperationParameter; 5] = [
    text("dryRun"),
    number("gracePeriodSeconds"),
    flag("ignoreStoreReadErrorWithClusterBreakingPotential"),
    flag("orphanDependents"),
    text("propagationPolicy"),
];
pub(super) const LOG: [OperationParameter; 9] = [
    text("container"),
    flag("follow"),
    flag("insecureSkipTLSVerifyBackend"),
    number("limitBytes"),
    flag("previous"),
    number("sinceSeconds"),
    text("stream"),
    number("tailLines"),
    flag("timestamps"),
];

const STREAMS: [OperationParameter; 4] = [flag("stderr"), flag("stdin"), flag("stdout"), flag("tty")];

/// The parameters of a connection to a pod, a node or a service, by the kind of its options.
pub(super) fn connect_parameters(kind: &str) -> Vec<OperationParameter> {
    match kind {
        "PodAttachOptions" => [&[text("container")], &STREAMS[..]].concat(),
        "PodExecOptions" => [&[text("command"), text("container")], &STREAMS[..]].concat(),
        "PodPortForwardOptions" => vec![number("ports")],
        _ => vec![text("path")],
    }
}

impl OperationParameter {
    pub(super) fn json(&self) -> Value {
        let mut json = json!({"name": self.name, "in": self.place, "schema": {"type": self.of, "uniqueItems": true}});
        if let Some(json) = json.as_object_mut().filter(|_| self.place == "path") {
            json.insert("required".into(), true.into());
        }
        json
    }

    /// The same in version 2.
    pub(super) fn json_v2(&self) -> Value {
        let mut json = json!({"name": self.name, "in": self.place, "type": self.of, "uniqueItems": true});
        if let Some(json) = json.as_object_mut().filter(|_| self.place == "path") {
            json.insert("required".into(), true.into());
        }
        json
    }
}
