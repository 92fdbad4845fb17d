//! A manager that writes an object.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value};

use super::{
    compare::{Comparison, compare},
    conflict::Conflicts,
    fieldset::Set,
    last_applied,
    managed::{self, Entry, Id, Managed, Operation},
    merge::merge,
    prune::prune,
    shape::Place,
    toset::to_set,
    update::{self, Error},
    validate::validate,
};
use crate::{
    api::{
        GroupVersion, Status,
        meta::{self, Meta},
    },
    schema::{Node, Schema},
};

/// The longest name of a manager, in bytes.
const MAX_MANAGER: usize = 128;
/// Who owns what was there before an object was first applied and had no books.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Nobody owns these: the server sets them, or they name the object.
static NOBODYS: LazyLock<Set> = LazyLock::new(|| {
    let of_meta = ["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"];
    let mut set = Set::of(&[&["apiVersion"], &["kind"], &["metadata"]]);
    for name in of_meta.into_iter().chain(["managedFields", "resourceVersion"]) {
        set = set.union(&Set::of(&[&["metadata", name]]));
    }
    set
});

/// Shows objects in the other versions of their kind, in which their managers may have written.
pub trait Convert: std::fmt::Debug {
    /// An object of the request's version in another one, and the shape of that; none if there is no such version.
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, Node)>;
}

/// What a write changed, as each version of the kind that has a manager sees it.
struct Differences {
    own: (String, Comparison),
    others: BTreeMap<String, Option<Comparison>>,
}

impl Differences {
    fn of(&self, api_version: &str) -> Option<&Comparison> {
        if self.own.0 == api_version {
            return Some(&self.own.1);
        }
        self.others.get(api_version).map_or(Some(&self.own.1), Option::as_ref)
    }
}

/// Who writes, and what.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The name of the manager.
    pub manager: &'a str,
    /// The version of the request, in which all objects are given.
    pub api_version: &'a str,
    /// The kind of the objects.
    pub kind: &'a str,
    /// The subresource of the request; empty for the main path.
    pub subresource: &'a str,
    /// The shape of the objects.
    pub schema: &'a Schema,
    /// What the request cannot change ([`super::reset_fields`]).
    pub reset: &'a Set,
    /// The time, as it shall stand in `managedFields`: RFC 3339, UTC, seconds.
    pub now: &'a str,
    /// The other versions of the kind. Without it all entries are taken as of the request's version.
    pub convert: Option<&'a dyn Convert>,
}

impl Owner<'_> {
    /// Keeps the books of a create (without `live`) or of an update: `new` is what was decoded and defaulted, before admission changes
    /// it. Whatever `managedFields` the writer sent is used as kube-apiserver does: the entries of `new` count if they can be read, else
    /// those of `live`; an empty list, or one of an empty entry, ends the bookkeeping of an existing object.
    pub fn update(&self, live: Option<&Value>, new: &mut Value) {
        let managed = self.entries_to_start_from(live, new);
        meta::remove_meta(new, "managedFields");
        if managed.is_empty() && live.is_some() {
            return;
        }
        // Where it fails there are no entries, as in kube-apiserver: none are better than wrong ones.
        if let Ok(managed) = self.updated(live, new, managed) {
            managed::store(new, &managed);
        }
    }

    /// What changed between two objects, in every version that has a manager.
    fn differences(&self, old: &Value, new: &Value, managed: &Managed) -> Result<Differences, String> {
        let compared = |old: &Value, new: &Value, schema: &Schema| {
            compare(old, new, schema).map_err(|error| format!("failed to compare objects: {error}"))
        };
        let own = (self.api_version.to_owned(), compared(old, new, self.schema)?);
        let mut others = BTreeMap::new();
        let Some(convert) = self.convert else { return Ok(Differences { own, others }) };
        let versions = managed.values().map(|entry| &entry.api_version).filter(|version| **version != own.0);
        for version in versions {
            if others.contains_key(version) {
                continue;
            }
            let converted = |object: &Value| convert.convert(object, version);
            let difference = match (converted(old), converted(new)) {
                (Some((old, schema)), Some((new, _))) => {
                    validate(&old, &schema).map_err(|error| format!("failed to convert old object: {error}"))?;
                    validate(&new, &schema).map_err(|error| format!("failed to convert new object: {error}"))?;
                    Some(compared(&old, &new, &schema)?)
                }
                _ => None,
            };
            others.insert(version.clone(), difference);
        }
        Ok(Differences { own, others })
    }

    /// Reads entries. The schema of a built-in type never changes, that of a custom one may have.
    fn decode(&self, entries: Option<&Value>) -> Result<Managed, String> {
        let mut managed = managed::decode(entries)?;
        if self.schema.name.is_empty() {
            for entry in managed.values_mut().filter(|entry| entry.api_version == self.api_version) {
                entry.set = Place::root(self.schema).reconcile(std::mem::take(&mut entry.set));
            }
        }
        Ok(managed)
    }

    fn entries_to_start_from(&self, live: Option<&Value>, new: &Value) -> Managed {
        let of_live = || self.decode(live.and_then(managed::entries)).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        let sent = managed::entries(new);
        if sent.and_then(Value::as_array).is_some_and(|entries| is_reset(entries)) {
            return Managed::new();
        }
        match self.decode(sent) {
            Ok(managed) if !managed.is_empty() => managed,
            _ => of_live(),
        }
    }

    fn updated(&self, live: Option<&Value>, new: &Value, mut managed: Managed) -> Result<Managed, String> {
        let nothing = Value::Object(Map::new());
        let differences = self.differences(live.unwrap_or(&nothing), new, &managed)?;
        // By force there are no conflicts.
        let _ = update::take(&mut managed, None, &|version| differences.of(version), self.reset, true);
        let Differences { own: (_, difference), .. } = differences;
        let taken = difference.modified.union(&difference.added);
        let taken = taken.recursive_difference(self.reset).difference(&NOBODYS);
        if !taken.is_empty() {
            let id = Id::new(self.manager, Operation::Update, self.api_version, self.subresource);
            let set = managed.remove(&id).map(|entry| entry.set).unwrap_or_default().union(&taken);
            managed.insert(id, self.entry(set));
        }
        update::cap(&mut managed);
        Ok(managed)
    }

    fn entry(&self, set: Set) -> Entry {
        Entry { api_version: self.api_version.to_owned(), time: Some(self.now.to_owned()), set }
    }

    /// Server-side apply: the live object (none: it is created) with what the configuration sets, without what this manager applied
    /// before and does so no longer. The result is to be decoded and defaulted as any other object.
    pub fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, Error> {
        self.check(config)?;
        let managed = self.decode(live.and_then(managed::entries)).map_err(failed("decode managed fields"))?;
        let applied = match self.applied(live, config, managed.clone(), force) {
            Err(Error::Conflicts(conflicts)) if self.manager == last_applied::MANAGER => {
                let left = live.map_or(Some(conflicts.clone()), |live| self.left_after_client_side(live, &conflicts));
                match left {
                    Some(left) => Err(Error::Conflicts(left)),
                    None => self.applied(live, config, managed, true),
                }
            }
            other => other,
        };
        let mut object = applied?;
        if self.manager == last_applied::MANAGER {
            last_applied::renew(&mut object, config);
        }
        Ok(object)
    }

    /// The conflicts that do not come from the manager's own earlier client-side apply; none if all do.
    fn left_after_client_side(&self, live: &Value, conflicts: &Conflicts) -> Option<Conflicts> {
        let Some(own) = last_applied::owned(live, self.api_version, self.schema) else {
            return Some(conflicts.clone());
        };
        let left = conflicts.0.iter().map(|(id, set)| (id.clone(), set.clone().difference(&own)));
        let left = Conflicts(left.filter(|(_, set)| !set.is_empty()).collect());
        (!left.0.is_empty()).then_some(left)
    }

    fn check(&self, config: &Value) -> Result<(), Error> {
        let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
        if (text("apiVersion"), text("kind")) != (self.api_version, self.kind) {
            let gvk = group_version_kind(text("apiVersion"), text("kind"));
            return Err(Error::Refused(Status::bad_request(format!("invalid object type: {gvk}"))));
        }
        if managed::entries(config).is_some() {
            return Err(Error::Refused(Status::bad_request("metadata.managedFields must be nil")));
        }
        Ok(())
    }

    fn applied(&self, live: Option<&Value>, config: &Value, managed: Managed, force: bool) -> Result<Value, Error> {
        let mut managed = self.with_books(live, managed)?;
        self.validate(config)?;
        let nothing = Value::Object(Map::new());
        let old = live.unwrap_or(&nothing);
        let id = Id::new(self.manager, Operation::Apply, self.api_version, self.subresource);
        let last = managed.remove(&id);
        let set = to_set(config, self.schema).map_err(failed("get field set"))?;
        let entry = Entry {
            api_version: self.api_version.to_owned(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            set: set.recursive_difference(self.reset),
        };
        managed.insert(id.clone(), entry);
        let mut object = merge(old, config, self.schema).map_err(failed("merge config"))?;
        if let Some(last) = last.filter(|last| !last.set.is_empty()) {
            let owned = managed.values().fold(Set::default(), |all, entry| all.union(&entry.set));
            object = prune(object, &last.set, &owned, self.schema).map_err(failed("prune fields"))?;
        }
        let differences = self.differences(old, &object, &managed).map_err(Error::plain)?;
        let of_version = |version: &str| differences.of(version);
        update::take(&mut managed, Some(&id), &of_version, self.reset, force).map_err(Error::Conflicts)?;
        self.settle(&mut managed, &id, live.is_none_or(|live| !same(live, &object)));
        managed::store(&mut object, &managed);
        Ok(object)
    }

    /// The entries of an object that is applied. If it had none, somebody owns what is there.
    fn with_books(&self, live: Option<&Value>, managed: Managed) -> Result<Managed, Error> {
        match live {
            Some(live) if managed.is_empty() => {
                let before = Owner { manager: BEFORE_FIRST_APPLY, ..*self };
                before.updated(None, live, managed).map_err(failed("create manager for existing fields"))
            }
            _ => Ok(managed),
        }
    }

    fn validate(&self, config: &Value) -> Result<(), Error> {
        validate(config, self.schema).map_err(|error| {
            let (namespace, name) = (config.namespace(), config.name());
            let gvk = group_version_kind(self.api_version, self.kind);
            Error::plain(format!("failed to create typed patch object ({namespace}/{name}; {gvk}): {error}"))
        })
    }

    /// The last touch to the entry of who applied: what nobody owns goes, and the time is now if the object changed. A manager that only
    /// joins the owners of fields has no time, as in kube-apiserver.
    fn settle(&self, managed: &mut Managed, id: &Id, changed: bool) {
        let Some(entry) = managed.get_mut(id) else { return };
        entry.set = std::mem::take(&mut entry.set).difference(&NOBODYS);
        if changed {
            entry.time = Some(self.now.to_owned());
        }
        if entry.set.is_empty() {
            managed.remove(id);
        }
    }
}

/// Whether an apply changed nothing. The store keeps no `apiVersion` and `kind`, and the entries are not part of what is applied.
fn same(live: &Value, object: &Value) -> bool {
    let (Value::Object(live), Value::Object(object)) = (live, object) else { return false };
    let plain = |members: &Map<String, Value>| {
        members.keys().filter(|key| !matches!(key.as_str(), "apiVersion" | "kind")).count()
    };
    let member = |(key, value): (&String, &Value)| match key.as_str() {
        "apiVersion" | "kind" => true,
        _ => live.get(key) == Some(value),
    };
    plain(live) == plain(object) && object.iter().all(member)
}

/// A step of an apply that failed.
fn failed(step: &str) -> impl Fn(String) -> Error {
    move |error| Error::plain(format!("failed to {step}: {error}"))
}

fn group_version_kind(api_version: &str, kind: &str) -> String {
    let gv = GroupVersion::parse(api_version).unwrap_or_else(|| GroupVersion::new("", ""));
    format!("{}/{}, Kind={kind}", gv.group, gv.version)
}

/// Whether a list of entries says that there shall be none.
fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [one] => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// The manager of a request that names none: the first part of its user agent.
pub fn default_manager(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for char in name.chars().filter(|char| !char.is_control()) {
        if manager.len() + char.len_utf8() > MAX_MANAGER {
            break;
        }
        manager.push(char);
    }
    manager
}
