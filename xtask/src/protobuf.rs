//! `cargo xtask protobuf`: the table by which the API server reads and writes Kubernetes' protobuf.
//!
//! A `generated.proto` says what is on the wire; the Go types beside it say what of that is in JSON: names,
//! which fields are pointers (an absent one differs from zero) and which are written when they are zero. Only
//! these facts go into the table.

mod go;
mod proto;

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use anyhow::Context as _;

use self::{
    go::{GoField, GoType},
    proto::{ProtoField, ProtoLabel, ProtoMessage},
};

/// The packages of what the API server serves, below the checkouts of k8s.io.
const PACKAGES: [&str; 25] = [
    "api/admissionregistration/v1",
    "api/apps/v1",
    "api/authentication/v1",
    "api/authorization/v1",
    "api/autoscaling/v1",
    "api/autoscaling/v2",
    "api/batch/v1",
    "api/certificates/v1",
    "api/coordination/v1",
    "api/core/v1",
    "api/discovery/v1",
    "api/events/v1",
    "api/flowcontrol/v1",
    "api/networking/v1",
    "api/node/v1",
    "api/policy/v1",
    "api/rbac/v1",
    "api/resource/v1",
    "api/scheduling/v1",
    "api/storage/v1",
    "apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "apimachinery/pkg/apis/meta/v1",
    "apimachinery/pkg/api/resource",
    "apimachinery/pkg/runtime",
    "apimachinery/pkg/util/intstr",
];

/// Writes the table of protobuf messages
#[derive(Debug, clap::Args)]
pub(crate) struct ProtobufArgs {
    /// A directory with checkouts of k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver below k8s.io/
    #[arg(long)]
    protos: PathBuf,
}

pub(crate) fn run(args: &ProtobufArgs) -> anyhow::Result<()> {
    let mut table =
        String::from("# Made by `cargo xtask protobuf`; codec/protobuf/table.rs says what the lines mean.\n");
    for package in PACKAGES {
        let dir = args.protos.join("k8s.io").join(package);
        let proto = dir.join("generated.proto");
        let proto = fs::read_to_string(&proto).with_context(|| format!("reading {}", proto.display()))?;
        let types = go::read_package(&dir).with_context(|| format!("reading the Go types of {package}"))?;
        for message in proto::parse_messages(&proto)? {
            write_message(&mut table, &message, &types)?;
        }
    }
    let path = crate::workspace_root().join("kubernetes/apiserver/src/codec/protobuf/messages.txt");
    fs::write(&path, table).with_context(|| format!("writing {}", path.display()))
}

fn write_message(table: &mut String, message: &ProtoMessage, types: &BTreeMap<String, GoType>) -> anyhow::Result<()> {
    let none = BTreeMap::new();
    let (mark, fields) = match types.get(&message.name) {
        Some(GoType::List) => (" []", &none),
        Some(GoType::Struct(fields)) => ("", fields),
        None => ("", &none),
    };
    writeln!(table, "{}.{}{mark}", message.package, message.name)?;
    for field in &message.fields {
        let plain = GoField { name: field.name.clone(), omits_empty: true, ..GoField::default() };
        let go = fields.get(&field.number).unwrap_or(&plain);
        let marks = field_marks(field, go);
        let name = if go.inline { &field.name } else { &go.name };
        writeln!(table, " {} {name} {marks}{}", field.number, field.kind)?;
    }
    Ok(())
}

/// What stands before a field's type.
fn field_marks(field: &ProtoField, go: &GoField) -> String {
    let marks = [
        (go.inline, "<"),
        (go.pointer, "*"),
        (!go.omits_empty && !go.inline, "!"),
        (go.omits_zero, "?"),
        (field.label == ProtoLabel::Repeated, "[]"),
        (field.label == ProtoLabel::Map, "{}"),
    ];
    marks.iter().filter(|(on, _)| *on).map(|(_, mark)| *mark).collect()
}
