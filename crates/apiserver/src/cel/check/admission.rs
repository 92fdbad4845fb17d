//! What expressions about admission requests can see.

use std::sync::Arc;

use super::{Environment, Type};

/// What is declared besides the request and its objects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declarations {
    /// `params`, for policies that name a kind of parameters.
    pub(crate) params: bool,
    /// `authorizer`
    pub(crate) authorizer: bool,
}

/// The environment of policies and match conditions.
pub(crate) fn admission(declared: Declarations) -> Environment {
    let texts = || Type::list(Type::String);
    let text = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), Type::String)).collect::<Vec<_>>();
    let field = |name: &str, of: Type| (name.to_owned(), of);
    let object = Type::object;
    let mut structs = vec![
        ("kubernetes.GroupVersionKind", text(&["group", "version", "kind"])),
        ("kubernetes.GroupVersionResource", text(&["group", "version", "resource"])),
    ];
    let mut user = text(&["username", "uid"]);
    user.extend([field("groups", texts()), field("extra", Type::map(Type::String, texts()))]);
    structs.push(("kubernetes.UserInfo", user));
    let mut request = text(&["subResource", "requestSubResource", "name", "namespace", "operation"]);
    request.extend([
        field("kind", object("kubernetes.GroupVersionKind")),
        field("resource", object("kubernetes.GroupVersionResource")),
        field("requestKind", object("kubernetes.GroupVersionKind")),
        field("requestResource", object("kubernetes.GroupVersionResource")),
        field("userInfo", object("kubernetes.UserInfo")),
        field("dryRun", Type::Bool),
        field("options", Type::Dyn),
    ]);
    structs.push(("kubernetes.AdmissionRequest", request));
    let mut metadata = text(&["name", "generateName", "namespace", "UID", "resourceVersion"]);
    metadata.extend([
        field("labels", Type::map(Type::String, Type::String)),
        field("annotations", Type::map(Type::String, Type::String)),
        field("creationTimestamp", Type::Timestamp),
        field("deletionTimestamp", Type::Timestamp),
        field("deletionGracePeriodSeconds", Type::Int),
        field("generation", Type::Int),
        field("finalizers", texts()),
    ]);
    structs.push(("kubernetes.NamespaceMetadata", metadata));
    structs.push(("kubernetes.NamespaceSpec", vec![field("finalizers", texts())]));
    let mut condition = text(&["status", "type", "message", "reason"]);
    condition.push(field("lastTransitionTime", Type::Timestamp));
    structs.push(("kubernetes.NamespaceCondition", condition));
    let mut status = text(&["phase"]);
    status.push(field("conditions", Type::list(object("kubernetes.NamespaceCondition"))));
    structs.push(("kubernetes.NamespaceStatus", status));
    let parts = [("metadata", "Metadata"), ("spec", "Spec"), ("status", "Status")];
    let namespace = parts.map(|(name, of)| field(name, object(&format!("kubernetes.Namespace{of}"))));
    structs.push(("kubernetes.Namespace", namespace.into()));

    let mut variables = vec![
        field("object", Type::Dyn),
        field("oldObject", Type::Dyn),
        field("namespaceObject", object("kubernetes.Namespace")),
        field("request", object("kubernetes.AdmissionRequest")),
    ];
    if declared.params {
        variables.push(field("params", Type::Dyn));
    }
    if declared.authorizer {
        let of = |name: &str| object(&format!("kubernetes.authorization.{name}"));
        variables.push(field("authorizer", of("Authorizer")));
        variables.push(field("authorizer.requestResource", of("ResourceCheck")));
    }
    let structs = structs.into_iter().map(|(name, fields)| (Arc::from(name), fields)).collect();
    Environment { variables, structs }
}
