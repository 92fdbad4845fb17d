//! The paths of a resource and their operations.

mod subresources;

use serde_json::Value;

use super::{
    names::{META, article, list_type, object_type, short},
    operation::{ApiOperation, MediaContent, OperationBody, PathItemContext, path_item},
    parameters::{DELETE, FORCE, NAME, NAMESPACE, OperationParameter, PRETTY, RESOURCE_VERSION, SELECT, WATCH, WRITE},
};
use crate::registry::ServedResource;

/// The media types of built-in objects.
pub(super) const BUILTIN_MEDIA: [&str; 3] =
    ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const CUSTOM_MEDIA: [&str; 2] = ["application/json", "application/yaml"];
const STREAM_MEDIA: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PATCH_MEDIA: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
const OK: &[&str] = &["200"];
const CHANGED: &[&str] = &["200", "201"];
const CREATED: &[&str] = &["200", "201", "202"];
const DELETED: &[&str] = &["200", "202"];

/// Resources whose deletion returns the object and not a `Status`.
const DELETION_GIVES_OBJECT: [&str; 16] = [
    "csidrivers",
    "csinodes",
    "deviceclasses",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourcequotas",
    "resourceslices",
    "serviceaccounts",
    "services",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
];

/// The supported types of patches.
pub(super) fn patch_media(resource: &ServedResource) -> Vec<&'static str> {
    let mut media = PATCH_MEDIA.to_vec();
    media.extend(resource.custom.is_none().then_some(STRATEGIC));
    media
}

/// Writes the paths of a resource.
pub(super) struct PathWriter<'a> {
    /// The path of the group and version: `/apis/apps/v1`.
    pub(super) root: &'a str,
    /// The prefix in operation names: `AppsV1`.
    pub(super) prefix: &'a str,
    /// The name of the tag: `apps_v1`.
    pub(super) tag: &'a str,
    pub(super) resource: &'a ServedResource,
}

impl PathWriter<'_> {
    /// Passes each path and its item to `write`.
    pub(super) fn write_paths(&self, write: &mut dyn FnMut(String, Value)) {
        let plural = &*self.resource.plural;
        let place = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{place}/{plural}");
        let common = PathItemContext { tag: self.tag, gv: &self.resource.gv, kind: &self.resource.kind };
        let mut put = |path: String, operations: Vec<ApiOperation>| {
            if !operations.is_empty() {
                write(format!("{}{path}", self.root), path_item(common, &operations));
            }
        };
        put(collection.clone(), self.collection());
        put(format!("{collection}/{{name}}"), self.object());
        if self.resource.namespaced && self.has_verb("list") {
            put(format!("/{plural}"), vec![self.list(false)]);
        }
        if self.has_verb("watch") && self.resource.custom.is_none() {
            put(format!("/watch{collection}"), vec![self.watch_list(self.resource.namespaced)]);
            put(format!("/watch{collection}/{{name}}"), vec![self.watch()]);
            if self.resource.namespaced {
                put(format!("/watch/{plural}"), vec![self.watch_list(false)]);
            }
        }
        for sub in &self.resource.subresources {
            self.write_subresource(sub, &format!("{}{collection}/{{name}}/{}", self.root, sub.name), write);
        }
    }

    fn has_verb(&self, verb: &str) -> bool {
        self.resource.verbs.contains(&verb)
    }

    /// `createAppsV1NamespacedDeployment`: the verb, `Namespaced` if the path has a namespace, and the kind.
    fn operation_id(&self, verb: &str, what: &str, suffix: &str) -> String {
        let namespaced = if self.resource.namespaced { "Namespaced" } else { "" };
        format!("{verb}{}{what}{namespaced}{}{suffix}", self.prefix, self.resource.kind)
    }

    fn parameters(&self, named: bool, more: &[&[OperationParameter]]) -> Vec<OperationParameter> {
        let mut parameters = vec![PRETTY];
        parameters.extend(self.resource.namespaced.then_some(NAMESPACE));
        parameters.extend(named.then_some(NAME));
        parameters.extend(more.concat());
        parameters
    }

    fn content(&self, of: impl Into<Option<String>>) -> MediaContent {
        let media = if self.resource.custom.is_some() { CUSTOM_MEDIA.to_vec() } else { BUILTIN_MEDIA.to_vec() };
        MediaContent { media, of: of.into() }
    }

    fn streamed(&self, of: String) -> MediaContent {
        let mut content = self.content(of);
        if self.resource.custom.is_none() {
            content.media.extend(STREAM_MEDIA);
        }
        content
    }

    fn body(&self, of: String, required: bool) -> Option<OperationBody> {
        let content = self.content(of);
        let media = if self.resource.custom.is_some() { content.media } else { vec!["*/*"] };
        Some(OperationBody { required, content: MediaContent { media, ..content } })
    }

    fn collection(&self) -> Vec<ApiOperation> {
        let mut operations = Vec::new();
        if self.has_verb("list") {
            operations.push(self.list(true));
        }
        if self.has_verb("create") {
            let id = self.operation_id("create", "", "");
            operations.push(self.create(id, object_type(self.resource), self.parameters(false, &[&WRITE])));
        }
        if self.has_verb("deletecollection") {
            operations.push(ApiOperation {
                method: "delete",
                action: "deletecollection",
                id: self.operation_id("delete", "Collection", ""),
                description: format!("delete collection of {}", self.resource.kind),
                parameters: self.parameters(false, &[&DELETE, &SELECT]),
                request: self.body(format!("{META}.DeleteOptions"), false),
                codes: OK,
                answer: self.content(format!("{META}.Status")),
            });
        }
        operations
    }

    fn object(&self) -> Vec<ApiOperation> {
        let of = object_type(self.resource);
        let mut operations = Vec::new();
        if self.has_verb("get") {
            operations.push(self.read(self.operation_id("read", "", ""), of.clone()));
        }
        if self.has_verb("update") {
            operations.push(self.replace(self.operation_id("replace", "", ""), of.clone()));
        }
        if self.has_verb("patch") {
            operations.push(self.patch(self.operation_id("patch", "", ""), of.clone()));
        }
        if self.has_verb("delete") {
            let gives = DELETION_GIVES_OBJECT.contains(&&*self.resource.plural) && self.resource.custom.is_none();
            operations.push(ApiOperation {
                method: "delete",
                action: "delete",
                id: self.operation_id("delete", "", ""),
                description: format!("delete {}", article(&self.resource.kind)),
                parameters: self.parameters(true, &[&DELETE]),
                request: self.body(format!("{META}.DeleteOptions"), false),
                codes: DELETED,
                answer: self.content(if gives { of } else { format!("{META}.Status") }),
            });
        }
        operations
    }

    /// The list of a namespace or of a cluster-scoped resource, or that of all namespaces.
    fn list(&self, own_place: bool) -> ApiOperation {
        let mut parameters = self.parameters(false, &[&SELECT, &WATCH]);
        let id = if own_place {
            self.operation_id("list", "", "")
        } else {
            parameters.retain(|parameter| *parameter != NAMESPACE);
            format!("list{}{}ForAllNamespaces", self.prefix, self.resource.kind)
        };
        ApiOperation {
            method: "get",
            action: "list",
            id,
            description: format!("list or watch objects of kind {}", self.resource.kind),
            parameters,
            request: None,
            codes: OK,
            answer: self.streamed(list_type(self.resource)),
        }
    }

    fn watch_list(&self, namespaced: bool) -> ApiOperation {
        let id = match (namespaced, self.resource.namespaced) {
            (false, true) => format!("watch{}{}ListForAllNamespaces", self.prefix, self.resource.kind),
            _ => self.operation_id("watch", "", "List"),
        };
        let description =
            format!("watch changes to a list of {}; deprecated: watch the list itself", self.resource.kind);
        ApiOperation {
            id,
            action: "watchlist",
            description,
            answer: self.events(),
            ..self.list(namespaced == self.resource.namespaced)
        }
    }

    fn watch(&self) -> ApiOperation {
        ApiOperation {
            id: self.operation_id("watch", "", ""),
            action: "watch",
            description: format!(
                "watch changes to {}; deprecated: watch the list itself",
                article(&self.resource.kind)
            ),
            parameters: self.parameters(true, &[&SELECT, &WATCH]),
            answer: self.events(),
            ..self.list(true)
        }
    }

    fn events(&self) -> MediaContent {
        self.streamed(format!("{META}.WatchEvent"))
    }

    fn create(&self, id: String, of: String, parameters: Vec<OperationParameter>) -> ApiOperation {
        ApiOperation {
            method: "post",
            action: "post",
            description: format!("create {}", article(short(&of))),
            id,
            parameters,
            request: self.body(of.clone(), true),
            codes: CREATED,
            answer: self.content(of),
        }
    }

    fn read(&self, id: String, of: String) -> ApiOperation {
        // Only custom resources document it; built-in ones accept it as well.
        let version = [RESOURCE_VERSION];
        let version = if self.resource.custom.is_some() { &version[..] } else { &[] };
        ApiOperation {
            method: "get",
            action: "get",
            id,
            description: format!("read the specified {}", short(&of)),
            parameters: self.parameters(true, &[version]),
            request: None,
            codes: OK,
            answer: self.content(of),
        }
    }

    fn replace(&self, id: String, of: String) -> ApiOperation {
        ApiOperation {
            method: "put",
            action: "put",
            id,
            description: format!("replace the specified {}", short(&of)),
            parameters: self.parameters(true, &[&WRITE]),
            request: self.body(of.clone(), true),
            codes: CHANGED,
            answer: self.content(of),
        }
    }

    fn patch(&self, id: String, of: String) -> ApiOperation {
        let content = MediaContent { media: patch_media(self.resource), of: Some(format!("{META}.Patch")) };
        ApiOperation {
            method: "patch",
            action: "patch",
            id,
            description: format!("partially update the specified {}", short(&of)),
            parameters: self.parameters(true, &[&WRITE, &[FORCE]]),
            request: Some(OperationBody { required: true, content }),
            codes: CHANGED,
            answer: self.content(of),
        }
    }
}
