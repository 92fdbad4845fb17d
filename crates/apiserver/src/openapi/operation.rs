//! One operation of a path, and the path as a whole.

use serde_json::{Map, Value, json};

use super::{Dialect, parameters::Parameter};
use crate::api::GroupVersion;

/// What an operation does.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The HTTP method, in lower case.
    pub(super) method: &'static str,
    /// As in `x-kubernetes-action`.
    pub(super) action: &'static str,
    /// Its name: `readAppsV1NamespacedDeployment`.
    pub(super) id: String,
    /// For people.
    pub(super) description: String,
    /// All of them, those of the path too.
    pub(super) parameters: Vec<Parameter>,
    /// What it takes.
    pub(super) request: Option<Request>,
    /// The codes of success, each with the same content.
    pub(super) codes: &'static [&'static str],
    /// What it answers with.
    pub(super) answer: Content,
}

/// What an operation takes.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Whether there must be one.
    pub(super) required: bool,
    /// What.
    pub(super) content: Content,
}

/// A schema in some media types.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// The media types.
    pub(super) media: Vec<&'static str>,
    /// The name of a type; none for text.
    pub(super) of: Option<String>,
}

/// What the operations of a path have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common<'a> {
    /// As in `tags`.
    pub(super) tag: &'a str,
    /// The kind, as in `x-kubernetes-group-version-kind`.
    pub(super) gv: &'a GroupVersion,
    pub(super) kind: &'a str,
}

impl Content {
    pub(super) fn json(&self) -> Value {
        let schema = match &self.of {
            Some(name) => json!({ "$ref": Dialect::V3.address(name) }),
            None => json!({"type": "string"}),
        };
        let content: Map<String, Value> =
            self.media.iter().map(|media| ((*media).to_owned(), json!({ "schema": schema }))).collect();
        content.into()
    }
}

/// The path item of operations. Parameters that all of them have are the path's own, as in kube-apiserver's documents.
pub(super) fn path_item(common: Common<'_>, operations: &[Operation]) -> Value {
    let mut shared = operations.first().map(|first| first.parameters.clone()).unwrap_or_default();
    shared.retain(|parameter| operations.iter().all(|operation| operation.parameters.contains(parameter)));
    let mut item = Map::new();
    if !shared.is_empty() {
        item.insert("parameters".into(), parameters(&shared, &[]));
    }
    for operation in operations {
        item.insert(operation.method.into(), operation.json(common, &shared));
    }
    item.into()
}

fn parameters(all: &[Parameter], except: &[Parameter]) -> Value {
    let mut own: Vec<&Parameter> = all.iter().filter(|parameter| !except.contains(parameter)).collect();
    own.sort_unstable();
    own.into_iter().map(Parameter::json).collect()
}

impl Operation {
    fn json(&self, common: Common<'_>, shared: &[Parameter]) -> Value {
        let mut json = json!({
            "tags": [common.tag],
            "description": self.description,
            "operationId": self.id,
            "responses": self.responses(),
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind":
                {"group": &*common.gv.group, "version": &*common.gv.version, "kind": common.kind},
        });
        let Some(object) = json.as_object_mut() else { return json };
        if self.parameters.len() > shared.len() {
            object.insert("parameters".into(), parameters(&self.parameters, shared));
        }
        if let Some(request) = &self.request {
            let mut body = json!({ "content": request.content.json() });
            if let Some(body) = body.as_object_mut().filter(|_| request.required) {
                body.insert("required".into(), true.into());
            }
            object.insert("requestBody".into(), body);
        }
        json
    }

    fn responses(&self) -> Value {
        let content = self.answer.json();
        let success = self.codes.iter().map(|code| {
            let description = match *code {
                "201" => "Created",
                "202" => "Accepted",
                _ => "OK",
            };
            ((*code).to_owned(), json!({"description": description, "content": content}))
        });
        let refused = ("401".to_owned(), json!({"description": "Unauthorized"}));
        success.chain([refused]).collect::<Map<String, Value>>().into()
    }
}
