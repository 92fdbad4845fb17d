//! Catalogs for tests.

use std::sync::{Arc, LazyLock};

use crate::{
    api::GroupVersion,
    kinds,
    registry::{Catalog, Custom, Plain, Resource, Subresource},
    schema::Node,
};

/// The built-in resources.
pub(crate) static BUILTIN: LazyLock<Catalog> = LazyLock::new(kinds::catalog);

/// A custom resource with `status` and `scale`.
pub(crate) fn widgets(group: &str, version: &str) -> Resource {
    let verbs = vec!["get", "patch", "update"];
    let scale = GroupVersion::new("autoscaling", "v1");
    Resource {
        gv: GroupVersion::new(group, version),
        plural: "widgets".into(),
        singular: "widget".into(),
        kind: "Widget".into(),
        list_kind: "WidgetList".into(),
        namespaced: true,
        short_names: vec!["wd".into()],
        categories: vec!["all".into()],
        verbs: vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        subresources: vec![
            Subresource { name: "status".into(), kind: "Widget".into(), gv: None, verbs: verbs.clone() },
            Subresource { name: "scale".into(), kind: "Scale".into(), gv: Some(scale), verbs },
        ],
        schema: Node::default(),
        strategy: Arc::new(Plain),
        custom: Some(Arc::new(Custom::default())),
        selectable: Vec::new(),
        storage_version_hash: "abc=".into(),
    }
}

/// The built-in resources and these.
pub(crate) fn catalog_with(resources: impl IntoIterator<Item = Resource>) -> Catalog {
    let mut catalog = BUILTIN.clone();
    resources.into_iter().for_each(|resource| catalog.insert(Arc::new(resource)));
    catalog
}
