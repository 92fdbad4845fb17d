//! `cargo xtask schemas`: the table of built-in types, from a cluster's own OpenAPI.
//!
//! The input is `/openapi/v3` of any cluster, saved as one file per group and version. What OpenAPI does not
//! say, whether Go leaves a field out when it is empty, comes from the types' Go sources if they are given,
//! else from the table as it stands. The same input gives the same table.

mod go;
mod table_line;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::workspace_root;

const TABLE_PATH: &str = "kubernetes/apiserver/src/schema/builtin.txt";

const TABLE_HEADER: &str = "\
# The built-in types of Kubernetes. Written by `cargo xtask schemas`; do not edit.
#
# package NAME           the types that follow are in it
# type NAME [kinds=GV,…] [map=atomic], then its fields; or `type NAME = SCALAR`
#   FIELD TYPE [attribute…]
#
# TYPE: a scalar, `any`, a type of the same package or of another one by its full name; `[]` and `{}` before it: list, map.
# required  must be there          omit  not written when empty
# zero      always written, as the zero value of its type when absent;  null  the same, as null
# list=, keys=, map=: server-side apply;  patch=, key=: strategic merge;  default=: JSON;  enum=: to the end of the line
";

/// Sources of the table
#[derive(Debug, clap::Args)]
pub(crate) struct SchemasArgs {
    /// A directory with `/openapi/v3` of a cluster, a file per group and version
    #[arg(long)]
    openapi: PathBuf,
    /// The Go sources of the types: a directory laid out as `staging/src/k8s.io` of Kubernetes
    #[arg(long)]
    go: Option<PathBuf>,
}

/// A type as OpenAPI has it, with every kind it stands for.
#[derive(Default)]
struct OpenApiType {
    schema: Value,
    kinds: BTreeSet<String>,
}

/// How Go writes a field when it is empty: one of the words of the table, or empty.
type FieldMarks = BTreeMap<(String, String), String>;

/// Writes the table.
pub(crate) fn run(args: &SchemasArgs) -> anyhow::Result<()> {
    let types = read_types(&args.openapi)?;
    ensure!(!types.is_empty(), "{} has no OpenAPI documents", args.openapi.display());
    let table = workspace_root().join(TABLE_PATH);
    let marks = match &args.go {
        Some(sources) => go::read_marks(sources, &types)?,
        None => table_line::parse_marks(&fs::read_to_string(&table).unwrap_or_default()),
    };
    let text = render_table(&types, &marks);
    fs::write(&table, &text).with_context(|| format!("failed to write {}", table.display()))?;
    println!("{}: {} types, {} bytes", table.display(), types.len(), text.len());
    Ok(())
}

/// All types of all documents, by their full names.
fn read_types(directory: &Path) -> anyhow::Result<BTreeMap<String, OpenApiType>> {
    let mut types: BTreeMap<String, OpenApiType> = BTreeMap::new();
    let entries = fs::read_dir(directory).with_context(|| format!("failed to list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        let document: Value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        for (name, schema) in schemas.into_iter().flatten() {
            let known = types.entry(name.clone()).or_default();
            known.schema = schema.clone();
            known.kinds.extend(kinds(schema));
        }
    }
    Ok(types)
}

/// The groups and versions in which a type is a kind, as in `apiVersion`.
fn kinds(schema: &Value) -> impl Iterator<Item = String> {
    let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    kinds.into_iter().flatten().map(|kind| {
        match (table_line::text_member(kind, "group"), table_line::text_member(kind, "version")) {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        }
    })
}

fn render_table(types: &BTreeMap<String, OpenApiType>, marks: &FieldMarks) -> String {
    // Sorted by package and name, which differs from the order of full names: `a.b.C` and `a.b-c.D`.
    let sorted: BTreeMap<_, _> =
        types.iter().map(|(name, of)| (name.rsplit_once('.').unwrap_or(("", name)), of)).collect();
    let (mut text, mut package) = (TABLE_HEADER.to_owned(), "");
    for ((of, name), declared) in sorted {
        if of != package {
            package = of;
            text.push_str(&format!("\npackage {package}\n"));
        }
        table_line::write_type(&mut text, package, name, declared, types, marks);
    }
    text
}

#[cfg(test)]
mod tests;
