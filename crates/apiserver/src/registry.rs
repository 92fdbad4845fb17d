//! Which resources are served now, and what is special about each.
//!
//! The catalog is replaced as a whole when a CRD comes, changes or goes, so that a request sees one catalog from its start to its
//! end. Nothing here does I/O.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    api::{GroupKind, GroupResource, GroupVersion, field},
    auth::User,
    schema::{Node, Schema},
    store::Stored,
};

/// One resource of one group and version, as it is served.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Where it is served.
    pub gv: GroupVersion,
    /// As in paths: `deployments`.
    pub plural: Arc<str>,
    /// As in `kubectl get deployment`.
    pub singular: Arc<str>,
    /// As in `kind: Deployment`.
    pub kind: Arc<str>,
    /// As in `kind: DeploymentList`.
    pub list_kind: Arc<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// As in `kubectl get deploy`.
    pub short_names: Vec<Arc<str>>,
    /// As in `kubectl get all`.
    pub categories: Vec<Arc<str>>,
    /// What can be done with it, in the words of discovery.
    pub verbs: Vec<&'static str>,
    /// `status`, `scale` and so on.
    pub subresources: Vec<Subresource>,
    /// The shape of its objects.
    pub schema: Node,
    /// What is special about the kind.
    pub strategy: Arc<dyn Strategy>,
    /// The definition, for custom resources.
    pub custom: Option<Arc<Custom>>,
    /// Fields that a selector may name, beside `metadata.name` and `metadata.namespace`, as paths without the first dot.
    pub selectable: Vec<Arc<str>>,
    /// As in discovery; empty where there is none.
    pub storage_version_hash: Arc<str>,
}

/// A part of a resource with a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// As in paths: `status`.
    pub name: Arc<str>,
    /// The kind that it takes and gives: the resource's own for `status`, `Scale` for `scale`.
    pub kind: Arc<str>,
    /// Where that kind is from, if not from the resource's own group and version.
    pub gv: Option<GroupVersion>,
    /// What can be done with it, in the words of discovery.
    pub verbs: Vec<&'static str>,
}

/// What a CRD says of a resource, beyond its schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Custom {
    /// The name of the CRD: `widgets.example.com`.
    pub crd: Arc<str>,
    /// The version that objects are stored in.
    pub storage_version: Arc<str>,
    /// The schemas of all versions, also of those that are not served.
    pub schemas: Arc<BTreeMap<Arc<str>, Arc<Schema>>>,
    /// Tells these versions and schemas from those that the definition had before.
    pub fingerprint: Arc<str>,
    /// What was stored at this revision or before may follow other schemas.
    pub schemas_since: u64,
    /// The versions that objects were stored in before, each with the last revision of which that holds, oldest first.
    pub stored_before: Arc<[(u64, Arc<str>)]>,
    /// Whether there is a status that the main path does not touch.
    pub has_status: bool,
    /// The paths of `scale`, if there is one.
    pub scale: Option<ScalePaths>,
    /// `additionalPrinterColumns`, as they stand in the CRD.
    pub columns: Vec<Value>,
    /// Said to everyone who uses the version.
    pub deprecation_warning: Option<Arc<str>>,
    /// Objects are kept whole: neither pruned nor checked (`x-kubernetes-preserve-unknown-fields` at the root).
    pub preserve_unknown: bool,
    /// The CRD is being deleted: nothing can be created any more.
    pub terminating: bool,
}

/// Where a custom resource keeps what `scale` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the CRD's own")]
pub struct ScalePaths {
    pub spec_replicas: Arc<str>,
    pub status_replicas: Arc<str>,
    pub label_selector: Option<Arc<str>>,
}

/// What is special about a kind. Every method has the answer of a kind about which nothing is special.
///
/// The order of a write is kube-apiserver's: decode and default → mutating admission → default again → `prepare_…` → `validate_…` →
/// validating admission → store.
pub trait Strategy: std::fmt::Debug + Send + Sync {
    /// Fills in what the schema's own defaults cannot say. It runs after every decode, also of what is read from a patch.
    fn default(&self, _object: &mut Value) {}

    /// Records in a new object who makes it, for kinds that say so.
    fn record_author(&self, _object: &mut Value, _author: &User) {}

    /// Removes or sets what a creator may not choose (status, for kinds that have one).
    fn prepare_create(&self, _object: &mut Value) {}

    /// The same for an update. `subresource` is empty on the main path. Generation rules are here for built-in kinds.
    fn prepare_update(&self, _new: &mut Value, _old: &Value, _subresource: &str) {}

    /// What a deletion says in the object before it is marked: finalizers of the kind's own, conditions, phases.
    fn prepare_delete(&self, _object: &mut Value, _now: &str) {}

    /// What is wrong with a new object, beyond its metadata (which is checked for every kind).
    fn validate_create(&self, _object: &Value, _errors: &mut field::Errors) {}

    /// What is wrong with a change, beyond its metadata.
    fn validate_update(&self, _new: &Value, _old: &Value, _subresource: &str, _errors: &mut field::Errors) {}

    /// What is wrong with a new object that is stored already, as others were stored at the same moment. It is taken back then.
    fn validate_stored(&self, _stored: &Stored, _errors: &mut field::Errors) {}

    /// What to tell the writer although it is allowed.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// What to tell the writer of a change although it is allowed.
    fn warnings_on_update(&self, new: &Value, _old: &Value) -> Vec<String> {
        self.warnings(new)
    }

    /// Whether validation compiles or evaluates expressions, which may take long.
    fn runs_expressions(&self) -> bool {
        false
    }

    /// Whether a PUT may create.
    fn create_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT without a resourceVersion overwrites whatever is there.
    fn unconditional_update(&self) -> bool {
        true
    }

    /// How names are checked.
    fn names(&self) -> NameRule {
        NameRule::Subdomain
    }

    /// Seconds between the deletion of an object and its end: pods have a grace period.
    fn grace_period(&self, _object: &Value, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// The value of a field for a selector, where it is not simply the text at that path.
    fn field_value(&self, _object: &Value, _path: &str) -> Option<String> {
        None
    }

    /// The group and version that objects are stored in, where these are not the resource's own: one collection can be served in
    /// two shapes (events, autoscalers). Plural and kind are the same in both.
    fn stored_as(&self) -> Option<GroupVersion> {
        None
    }

    /// Turns an object from the resource's own shape into the stored one. Everything else of this trait sees the stored shape.
    fn stored(&self, _object: &mut Value) {}

    /// Turns an object from the stored shape into the resource's own.
    fn served(&self, _object: &mut Value) {}
}

/// How names of a kind are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain: most kinds.
    Subdomain,
    /// DNS-1123 label: namespaces.
    Label,
    /// DNS-1035 label: services.
    Label1035,
    /// Only what a path segment may hold: RBAC.
    PathSegment,
}

/// A kind about which nothing is special.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Strategy for Plain {}

/// Everything that is served at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    resources: BTreeMap<(GroupVersion, Arc<str>), Arc<Resource>>,
}

/// The catalog of now.
#[derive(Debug, Default)]
pub struct Registry {
    now: ArcSwap<Catalog>,
    changes: watch::Sender<()>,
}

impl Resource {
    /// The collection that its objects are stored in.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.stored_group(), resource: Arc::clone(&self.plural) }
    }

    /// As in messages about its objects.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.stored_group(), kind: Arc::clone(&self.kind) }
    }

    fn stored_group(&self) -> Arc<str> {
        self.strategy.stored_as().map_or_else(|| Arc::clone(&self.gv.group), |stored| stored.group)
    }

    /// A subresource by its name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }

    /// Whether it has a subresource `status`.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

impl Catalog {
    /// A resource by its place.
    pub fn get(&self, gv: &GroupVersion, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(gv.clone(), Arc::from(plural)))
    }

    /// A resource by its kind.
    pub fn by_kind(&self, gv: &GroupVersion, kind: &str) -> Option<&Arc<Resource>> {
        self.of(gv).find(|resource| &*resource.kind == kind)
    }

    /// The resources of a group and version, in the order of their names.
    pub fn of(&self, gv: &GroupVersion) -> impl Iterator<Item = &Arc<Resource>> {
        let from = (gv.clone(), Arc::from(""));
        self.resources.range(from..).take_while(move |((of, _), _)| of == gv).map(|(_, resource)| resource)
    }

    /// All resources, by group, version and name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Adds a resource, or replaces the one in its place.
    pub fn insert(&mut self, resource: Arc<Resource>) {
        self.resources.insert((resource.gv.clone(), Arc::clone(&resource.plural)), resource);
    }

    /// Removes the resources for which this holds.
    pub fn remove(&mut self, gone: impl Fn(&Resource) -> bool) {
        self.resources.retain(|_, resource| !gone(resource));
    }
}

impl Registry {
    /// A registry with this catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self { now: ArcSwap::from_pointee(catalog), changes: watch::Sender::default() }
    }

    /// The catalog of now, for a whole request.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.now.load_full()
    }

    /// Changes the catalog. Changes at the same time are made one after the other.
    pub fn change(&self, change: impl Fn(&mut Catalog)) {
        self.now.rcu(|now| {
            let mut next = Catalog::clone(now);
            change(&mut next);
            next
        });
        self.changes.send_replace(());
    }

    /// Tells when the catalog has changed.
    pub fn changed(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}
