//! The built-in types, from the committed table `builtin.txt`.
//!
//! The first look-up of a type indexes the table (some 100 µs); the tree of a type is built on its first use,
//! and kept. Trees refer to other types by number, so that types may contain themselves and an idle server
//! holds only the types in use.

pub(crate) mod parse;
mod raw;

use std::sync::{LazyLock, OnceLock};

pub(crate) use self::raw::RawType;
use super::{LazyNode, Schema, SchemaNode};
use crate::api::GroupVersion;

static TABLE: &str = include_str!("builtin.txt");
static INDEX: LazyLock<TypeIndex> = LazyLock::new(|| TypeIndex::read(TABLE));
/// The schema of a number outside of the table, which never occurs.
static EMPTY_SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::default);

struct TypeIndex {
    entries: Vec<TypeEntry>,
    /// By kind, then group and version.
    kinds: Vec<KindEntry>,
}

struct TypeEntry {
    package: &'static str,
    name: &'static str,
    /// Its lines, beginning with the `type` line.
    lines: &'static str,
    built: OnceLock<Box<Schema>>,
}

struct KindEntry {
    kind: &'static str,
    group: &'static str,
    version: &'static str,
    index: u32,
}

/// Looks up a type by its full name, as in OpenAPI: `io.k8s.api.core.v1.Container`.
pub fn schema_by_name(name: &str) -> Option<&'static Schema> {
    Some(find(index_of(name)?))
}

pub fn schema_for_kind(gv: &GroupVersion, kind: &str) -> Option<&'static Schema> {
    Some(find(index_of_kind(gv, kind)?))
}

/// All types, by package and name. This builds every tree.
pub fn types() -> impl Iterator<Item = &'static Schema> {
    INDEX.entries.iter().map(TypeEntry::schema)
}

/// The full names of all types, by package and name.
pub fn names() -> impl Iterator<Item = String> {
    INDEX.entries.iter().map(|entry| format!("{}.{}", entry.package, entry.name))
}

/// Every kind, with its group and version, and the name of its type.
pub fn kinds() -> impl Iterator<Item = (GroupVersion, &'static str, String)> {
    INDEX.kinds.iter().filter_map(|known| {
        let entry = INDEX.entries.get(known.index as usize)?;
        let gv = GroupVersion::new(known.group, known.version);
        Some((gv, known.kind, format!("{}.{}", entry.package, entry.name)))
    })
}

/// The groups and versions in which a type is a kind, in the order of `apiVersion`.
pub fn served_in(name: &str) -> Vec<GroupVersion> {
    let Some(entry) = index_of(name).and_then(|index| INDEX.entries.get(index as usize)) else { return Vec::new() };
    entry.served_in().map(|(group, version)| GroupVersion::new(group, version)).collect()
}

/// The full name of the type of a kind, without building its tree.
pub fn type_name_for_kind(gv: &GroupVersion, kind: &str) -> Option<String> {
    let entry = INDEX.entries.get(index_of_kind(gv, kind)? as usize)?;
    Some(format!("{}.{}", entry.package, entry.name))
}

/// The lines of a type, without building its tree.
pub(crate) fn raw(name: &str) -> Option<RawType> {
    let entry = INDEX.entries.get(index_of(name)? as usize)?;
    Some(RawType { package: entry.package, name: entry.name, lines: entry.lines })
}

/// A node whose type is looked up on its first use.
fn lazy_node(name: &str) -> Option<SchemaNode> {
    Some(SchemaNode::Lazy(LazyNode { index: index_of(name)?, find }))
}

/// Whether a type accepts any value, without building its tree.
fn is_any(index: u32) -> bool {
    INDEX
        .entries
        .get(index as usize)
        .is_some_and(|entry| entry.lines.lines().next().unwrap_or_default().ends_with(" = any"))
}

fn index_of(name: &str) -> Option<u32> {
    let key = name.rsplit_once('.')?;
    let at = INDEX.entries.binary_search_by(|entry| (entry.package, entry.name).cmp(&key)).ok()?;
    u32::try_from(at).ok()
}

fn index_of_kind(gv: &GroupVersion, kind: &str) -> Option<u32> {
    let key = (kind, &*gv.group, &*gv.version);
    let at = INDEX.kinds.binary_search_by(|known| (known.kind, known.group, known.version).cmp(&key)).ok()?;
    INDEX.kinds.get(at).map(|known| known.index)
}

fn find(index: u32) -> &'static Schema {
    INDEX.entries.get(index as usize).map_or(&EMPTY_SCHEMA, TypeEntry::schema)
}

impl TypeIndex {
    fn read(table: &'static str) -> Self {
        let mut entries: Vec<TypeEntry> = Vec::with_capacity(640);
        let mut package = "";
        let mut rest = table;
        while let Some((line, after)) = rest.split_once('\n') {
            if let Some(name) = line.strip_prefix("package ") {
                package = name;
            } else if let Some(of) = line.strip_prefix("type ") {
                let name = of.split(' ').next().unwrap_or(of);
                let end = type_end(rest);
                let lines = rest.get(..end).unwrap_or(rest);
                entries.push(TypeEntry { package, name, lines, built: OnceLock::new() });
                rest = rest.get(end..).unwrap_or_default();
                continue;
            }
            rest = after;
        }
        entries.sort_by_key(|entry| (entry.package, entry.name));
        let kinds = kinds_of(&entries);
        Self { entries, kinds }
    }
}

/// The end of the first type in the text, whose field lines are indented.
fn type_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if end > 0 && !line.starts_with(b" ") {
            break;
        }
        end += line.len();
    }
    end
}

fn kinds_of(entries: &[TypeEntry]) -> Vec<KindEntry> {
    let mut kinds = Vec::with_capacity(640);
    for (index, entry) in (0..).zip(entries) {
        let of = |(group, version)| KindEntry { kind: entry.name, group, version, index };
        kinds.extend(entry.served_in().map(of));
    }
    kinds.sort_by_key(|kind| (kind.kind, kind.group, kind.version));
    kinds
}

impl TypeEntry {
    fn schema(&'static self) -> &'static Schema {
        self.built.get_or_init(|| Box::new(parse::schema(self.package, self.name, self.lines)))
    }

    fn served_in(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        raw::served_in(self.lines)
    }
}

#[cfg(test)]
mod tests;
