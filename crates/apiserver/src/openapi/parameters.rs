//! The parameters of operations.

use serde_json::{Value, json};

/// A parameter of a path or a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter {
    name: &'static str,
    place: &'static str,
    of: &'static str,
}

const fn path(name: &'static str) -> Parameter {
    Parameter { name, place: "path", of: "string" }
}

const fn text(name: &'static str) -> Parameter {
    Parameter { name, place: "query", of: "string" }
}

const fn flag(name: &'static str) -> Parameter {
    Parameter { name, place: "query", of: "boolean" }
}

const fn number(name: &'static str) -> Parameter {
    Parameter { name, place: "query", of: "integer" }
}

pub(super) const NAME: Parameter = path("name");
pub(super) const NAMESPACE: Parameter = path("namespace");
/// The rest of the path, which a proxy passes on.
pub(super) const REST: Parameter = path("path");
pub(super) const PRETTY: Parameter = text("pretty");
pub(super) const RESOURCE_VERSION: Parameter = text("resourceVersion");
pub(super) const FORCE: Parameter = flag("force");

/// Of all that writes.
pub(super) const WRITE: [Parameter; 3] = [text("dryRun"), text("fieldManager"), text("fieldValidation")];
/// Of what reads many objects.
pub(super) const SELECT: [Parameter; 9] = [
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
/// Of what can be watched.
pub(super) const WATCH: [Parameter; 2] = [flag("allowWatchBookmarks"), flag("watch")];
/// Of deletions.
pub(super) const DELETE: [Parameter; 5] = [
    text("dryRun"),
    number("gracePeriodSeconds"),
    flag("ignoreStoreReadErrorWithClusterBreakingPotential"),
    flag("orphanDependents"),
    text("propagationPolicy"),
];
/// Of a pod's log.
pub(super) const LOG: [Parameter; 9] = [
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

const STREAMS: [Parameter; 4] = [flag("stderr"), flag("stdin"), flag("stdout"), flag("tty")];

/// Of a connection to a pod, a node or a service, by the kind of its options.
pub(super) fn of_connection(kind: &str) -> Vec<Parameter> {
    match kind {
        "PodAttachOptions" => [&[text("container")], &STREAMS[..]].concat(),
        "PodExecOptions" => [&[text("command"), text("container")], &STREAMS[..]].concat(),
        "PodPortForwardOptions" => vec![number("ports")],
        _ => vec![text("path")],
    }
}

impl Parameter {
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
