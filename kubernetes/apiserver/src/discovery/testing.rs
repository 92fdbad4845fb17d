//! Catalogs for tests.

use std::sync::{Arc, LazyLock};

use crate::{
    api::GroupVersion,
    kinds,
    registry::{Catalog, CustomResourceInfo, DefaultStrategy, ServedResource, Subresource},
    schema::SchemaNode,
};

pub(crate) static BUILTIN: LazyLock<Catalog> = LazyLock::new(kinds::catalog);

/// A custom resource with `status` and `scale`.
pub(crate) fn widgets(group: &str, version: &str) -> ServedResource {
    let verbs = vec!["get", "patch", "update"];
    let scale = GroupVersion::new("autoscaling", "v1");
    ServedResource {
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
        schema: SchemaNode::default(),
        strategy: Arc::new(DefaultStrategy),
        custom: Some(Arc::new(CustomResourceInfo::default())),
        selectable: Vec::new(),
        storage_version_hash: "abc=".into(),
    }
}

/// The built-in resources and the given ones.
pub(crate) fn catalog_with(resources: impl IntoIterator<Item = ServedResource>) -> Catalog {
    let mut catalog = BUILTIN.clone();
    resources.into_iter().for_each(|resource| catalog.insert(Arc::new(resource)));
    catalog
}
