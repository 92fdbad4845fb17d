//! The declarations for expressions about admission requests.

use std::sync::Arc;

use super::{CelType, TypeEnvironment};

/// Declarations besides the request and its objects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VariableDeclarations {
    /// `params`, for policies with a `paramKind`.
    pub(crate) params: bool,
    pub(crate) authorizer: bool,
}

/// The environment of policies and match conditions.
pub(crate) fn admission_environment(declared: VariableDeclarations) -> TypeEnvironment {
    let texts = || CelType::list(CelType::String);
    let text = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), CelType::String)).collect::<Vec<_>>();
    let field = |name: &str, of: CelType| (name.to_owned(), of);
    let object = CelType::object;
    let mut structs = vec![
        ("kubernetes.GroupVersionKind", text(&["group", "version", "kind"])),
        ("kubernetes.GroupVersionResource", text(&["group", "version", "resource"])),
    ];
    let mut user = text(&["username", "uid"]);
    user.extend([field("groups", texts()), field("extra", CelType::map(CelType::String, texts()))]);
    structs.push(("kubernetes.UserInfo", user));
    let mut request = text(&["subResource", "requestSubResource", "name", "namespace", "operation"]);
    request.extend([
        field("kind", object("kubernetes.GroupVersionKind")),
        field("resource", object("kubernetes.GroupVersionResource")),
        field("requestKind", object("kubernetes.GroupVersionKind")),
        field("requestResource", object("kubernetes.GroupVersionResource")),
        field("userInfo", object("kubernetes.UserInfo")),
        field("dryRun", CelType::Bool),
        field("options", CelType::Dyn),
    ]);
    structs.push(("kubernetes.AdmissionRequest", request));
    let mut metadata = text(&["name", "generateName", "namespace", "UID", "resourceVersion"]);
    metadata.extend([
        field("labels", CelType::map(CelType::String, CelType::String)),
        field("annotations", CelType::map(CelType::String, CelType::String)),
        field("creationTimestamp", CelType::Timestamp),
        field("deletionTimestamp", CelType::Timestamp),
        field("deletionGracePeriodSeconds", CelType::Int),
        field("generation", CelType::Int),
        field("finalizers", texts()),
    ]);
    structs.push(("kubernetes.NamespaceMetadata", metadata));
    structs.push(("kubernetes.NamespaceSpec", vec![field("finalizers", texts())]));
    let mut condition = text(&["status", "type", "message", "reason"]);
    condition.push(field("lastTransitionTime", CelType::Timestamp));
    structs.push(("kubernetes.NamespaceCondition", condition));
    let mut status = text(&["phase"]);
    status.push(field("conditions", CelType::list(object("kubernetes.NamespaceCondition"))));
    structs.push(("kubernetes.NamespaceStatus", status));
    let parts = [("metadata", "Metadata"), ("spec", "Spec"), ("status", "Status")];
    let namespace = parts.map(|(name, of)| field(name, object(&format!("kubernetes.Namespace{of}"))));
    structs.push(("kubernetes.Namespace", namespace.into()));

    let mut variables = vec![
        field("object", CelType::Dyn),
        field("oldObject", CelType::Dyn),
        field("namespaceObject", object("kubernetes.Namespace")),
        field("request", object("kubernetes.AdmissionRequest")),
    ];
    if declared.params {
        variables.push(field("params", CelType::Dyn));
    }
    if declared.authorizer {
        let of = |name: &str| object(&format!("kubernetes.authorization.{name}"));
        variables.push(field("authorizer", of("Authorizer")));
        variables.push(field("authorizer.requestResource", of("ResourceCheck")));
    }
    let structs = structs.into_iter().map(|(name, fields)| (Arc::from(name), fields)).collect();
    TypeEnvironment { variables, structs }
}
