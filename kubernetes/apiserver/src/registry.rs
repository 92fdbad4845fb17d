//! The catalog of served resources, and the strategy of each kind.
//!
//! The catalog is replaced as a whole when a CRD is created, changed or deleted, so that a request sees one
//! catalog from its start to its end. Nothing here does I/O.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    api::{GroupKind, GroupResource, GroupVersion, field},
    auth::UserInfo,
    schema::{Schema, SchemaNode},
    store::Stored,
};

/// One resource of one group and version, as it is served.
#[derive(Clone, Debug)]
pub struct ServedResource {
    pub gv: GroupVersion,
    pub plural: Arc<str>,
    /// As in `kubectl get deployment`.
    pub singular: Arc<str>,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    pub namespaced: bool,
    /// As in `kubectl get deploy`.
    pub short_names: Vec<Arc<str>>,
    /// As in `kubectl get all`.
    pub categories: Vec<Arc<str>>,
    /// The verbs in discovery.
    pub verbs: Vec<&'static str>,
    /// `status`, `scale` and so on.
    pub subresources: Vec<Subresource>,
    /// The schema of its objects.
    pub schema: SchemaNode,
    /// The rules of its kind.
    pub strategy: Arc<dyn Strategy>,
    /// The CRD, for custom resources.
    pub custom: Option<Arc<CustomResourceInfo>>,
    /// Fields that field selectors support beside `metadata.name` and `metadata.namespace`, as paths without
    /// the first dot.
    pub selectable: Vec<Arc<str>>,
    /// The hash in discovery; empty where there is none.
    pub storage_version_hash: Arc<str>,
}

/// A subresource, which has a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    pub name: Arc<str>,
    /// The kind that it accepts and returns: the resource's own for `status`, `Scale` for `scale`.
    pub kind: Arc<str>,
    /// The group and version of that kind, if they are not the resource's own.
    pub gv: Option<GroupVersion>,
    /// The verbs in discovery.
    pub verbs: Vec<&'static str>,
}

/// The parts of a CRD that concern one resource, beyond its schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomResourceInfo {
    /// The name of the CRD: `widgets.example.com`.
    pub crd: Arc<str>,
    pub storage_version: Arc<str>,
    /// The schemas of all versions, also of those that are not served.
    pub schemas: Arc<BTreeMap<Arc<str>, Arc<Schema>>>,
    /// Identifies this set of versions and schemas among those that the CRD has had.
    pub fingerprint: Arc<str>,
    /// Objects stored at this revision or before may follow other schemas.
    pub schemas_since: u64,
    /// Earlier storage versions, each with the last revision for which it applies, oldest first.
    pub stored_before: Arc<[(u64, Arc<str>)]>,
    /// Whether there is a status that writes to the main path do not change.
    pub has_status: bool,
    /// The paths of `scale`, if there is one.
    pub scale: Option<ScalePaths>,
    /// `additionalPrinterColumns`, as in the CRD.
    pub columns: Vec<Value>,
    /// The warning for every request to this version.
    pub deprecation_warning: Option<Arc<str>>,
    /// Objects are kept whole: neither pruned nor validated (`x-kubernetes-preserve-unknown-fields` at the
    /// root).
    pub preserve_unknown: bool,
    /// The CRD is being deleted, so nothing can be created any more.
    pub terminating: bool,
}

/// The fields of a custom resource that `scale` maps to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: Arc<str>,
    pub status_replicas: Arc<str>,
    pub label_selector: Option<Arc<str>>,
}

/// The rules of a kind. Every method has a default for kinds without a rule of their own.
///
/// The order of a write is kube-apiserver's: decode and default → mutating admission → default again →
/// `prepare_…` → `validate_…` → validating admission → store.
pub trait Strategy: std::fmt::Debug + Send + Sync {
    /// Sets the defaults that the schema cannot express. It runs after every decode, also of the result of a
    /// patch.
    fn default(&self, _object: &mut Value) {}

    /// Records the author of a new object, for kinds that have such a field.
    fn record_author(&self, _object: &mut Value, _author: &UserInfo) {}

    /// Removes or sets the fields that a creator may not choose (status, for kinds that have one).
    fn prepare_create(&self, _object: &mut Value) {}

    /// The same for an update. `subresource` is empty on the main path. Built-in kinds also update the
    /// generation here.
    fn prepare_update(&self, _new: &mut Value, _old: &Value, _subresource: &str) {}

    /// Changes an object before it is marked as deleted: finalizers of the kind's own, conditions, phases.
    fn prepare_delete(&self, _object: &mut Value, _now: &str) {}

    /// Validates a new object, except its metadata (which is validated for every kind).
    fn validate_create(&self, _object: &Value, _errors: &mut field::FieldErrors) {}

    /// Validates a change, except that of metadata.
    fn validate_update(&self, _new: &Value, _old: &Value, _subresource: &str, _errors: &mut field::FieldErrors) {}

    /// Validates a new object after it was stored, against objects that were stored concurrently. An object
    /// that fails is removed again.
    fn validate_stored(&self, _stored: &Stored, _errors: &mut field::FieldErrors) {}

    /// Warnings for the writer of an accepted object.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Warnings for the writer of an accepted change.
    fn warnings_on_update(&self, new: &Value, _old: &Value) -> Vec<String> {
        self.warnings(new)
    }

    /// Whether validation compiles or evaluates expressions, which may take long.
    fn runs_expressions(&self) -> bool {
        false
    }

    /// Whether a PUT may create an object.
    fn create_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT without a resourceVersion overwrites the stored object.
    fn unconditional_update(&self) -> bool {
        true
    }

    fn names(&self) -> NameRule {
        NameRule::Subdomain
    }

    /// The grace period of a deletion in seconds, for kinds that have one, such as pods.
    fn grace_period(&self, _object: &Value, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// The value of a field for a field selector, where it is not simply the text at that path.
    fn field_value(&self, _object: &Value, _path: &str) -> Option<String> {
        None
    }

    /// The group and version that objects are stored in, where these are not the resource's own: one collection
    /// can be served in two shapes (events, autoscalers). Plural and kind are the same in both.
    fn storage_version(&self) -> Option<GroupVersion> {
        None
    }

    /// Converts an object from the served shape to the stored one. All other methods of this trait see the
    /// stored shape.
    fn convert_to_stored(&self, _object: &mut Value) {}

    /// Converts an object from the stored shape to the served one.
    fn convert_to_served(&self, _object: &mut Value) {}
}

/// The rule for names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain: most kinds.
    Subdomain,
    /// DNS-1123 label: namespaces.
    Label,
    /// DNS-1035 label: services.
    Label1035,
    /// Anything that a path segment may hold: RBAC.
    PathSegment,
}

/// A kind without rules of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {}

/// All resources that are served at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    resources: BTreeMap<(GroupVersion, Arc<str>), Arc<ServedResource>>,
}

#[derive(Debug, Default)]
pub struct Registry {
    current: ArcSwap<Catalog>,
    changes: watch::Sender<()>,
}

impl ServedResource {
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.stored_group(), resource: Arc::clone(&self.plural) }
    }

    /// The group and kind, as in messages about its objects.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.stored_group(), kind: Arc::clone(&self.kind) }
    }

    fn stored_group(&self) -> Arc<str> {
        self.strategy.storage_version().map_or_else(|| Arc::clone(&self.gv.group), |stored| stored.group)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }

    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

impl Catalog {
    /// Looks up a resource by its version and plural.
    pub fn get(&self, gv: &GroupVersion, plural: &str) -> Option<&Arc<ServedResource>> {
        self.resources.get(&(gv.clone(), Arc::from(plural)))
    }

    pub fn find_by_kind(&self, gv: &GroupVersion, kind: &str) -> Option<&Arc<ServedResource>> {
        self.resources_of_version(gv).find(|resource| &*resource.kind == kind)
    }

    /// The resources of a group and version, sorted by name.
    pub fn resources_of_version(&self, gv: &GroupVersion) -> impl Iterator<Item = &Arc<ServedResource>> {
        let from = (gv.clone(), Arc::from(""));
        self.resources.range(from..).take_while(move |((of, _), _)| of == gv).map(|(_, resource)| resource)
    }

    /// All resources, by group, version and name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ServedResource>> {
        self.resources.values()
    }

    pub fn insert(&mut self, resource: Arc<ServedResource>) {
        self.resources.insert((resource.gv.clone(), Arc::clone(&resource.plural)), resource);
    }

    pub fn remove(&mut self, gone: impl Fn(&ServedResource) -> bool) {
        self.resources.retain(|_, resource| !gone(resource));
    }
}

impl Registry {
    pub fn new(catalog: Catalog) -> Self {
        Self { current: ArcSwap::from_pointee(catalog), changes: watch::Sender::default() }
    }

    /// The current catalog, for a whole request.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Changes the catalog. Concurrent changes are applied one after the other.
    pub fn update_catalog(&self, change: impl Fn(&mut Catalog)) {
        self.current.rcu(|now| {
            let mut next = Catalog::clone(now);
            change(&mut next);
            next
        });
        self.changes.send_replace(());
    }

    /// Notifies of changes of the catalog.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}
