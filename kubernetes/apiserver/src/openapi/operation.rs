//! One operation of a path, and the path as a whole.

use serde_json::{Map, Value, json};

use super::{SchemaDialect, parameters::OperationParameter};
use crate::api::GroupVersion;

#[derive(Clone, Debug)]
pub(super) struct ApiOperation {
    /// The HTTP method, in lower case.
    pub(super) method: &'static str,
    pub(super) action: &'static str,
    /// The operation id: `readAppsV1NamespacedDeployment`.
    pub(super) id: String,
    pub(super) description: String,
    /// All parameters, including those of the path.
    pub(super) parameters: Vec<OperationParameter>,
    pub(super) request: Option<OperationBody>,
    /// The status codes of success, each with the same content.
    pub(super) codes: &'static [&'static str],
    pub(super) answer: MediaContent,
}

#[derive(Clone, Debug)]
pub(super) struct OperationBody {
    /// Whether the body is required.
    pub(super) required: bool,
    pub(super) content: MediaContent,
}

/// A schema in several media types.
#[derive(Clone, Debug)]
pub(super) struct MediaContent {
    pub(super) media: Vec<&'static str>,
    /// The name of the type; none for text.
    pub(super) of: Option<String>,
}

/// The properties that the operations of a path share.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathItemContext<'a> {
    pub(super) tag: &'a str,
    /// The kind, as in `x-kubernetes-group-version-kind`.
    pub(super) gv: &'a GroupVersion,
    pub(super) kind: &'a str,
}

impl MediaContent {
    pub(super) fn json(&self) -> Value {
        let schema = match &self.of {
            Some(name) => json!({ "$ref": SchemaDialect::V3.address(name) }),
            None => json!({"type": "string"}),
        };
        let content: Map<String, Value> =
            self.media.iter().map(|media| ((*media).to_owned(), json!({ "schema": schema }))).collect();
        content.into()
    }
}

/// The path item of operations. Parameters that all operations share are the path's own, as in kube-apiserver's
/// documents.
pub(super) fn path_item(common: PathItemContext<'_>, operations: &[ApiOperation]) -> Value {
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

fn parameters(all: &[OperationParameter], except: &[OperationParameter]) -> Value {
    let mut own: Vec<&OperationParameter> = all.iter().filter(|parameter| !except.contains(parameter)).collect();
    own.sort_unstable();
    own.into_iter().map(OperationParameter::json).collect()
}

impl ApiOperation {
    fn json(&self, common: PathItemContext<'_>, shared: &[OperationParameter]) -> Value {
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
