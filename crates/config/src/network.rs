//! Settings that components with connections share: addresses, TLS, compression, keepalive, headers, authenticators,
//! and servers as a whole.

mod address;
mod compression;
mod keepalive;
pub(crate) mod server;
pub(crate) mod tls;
mod url;

pub(crate) use address::{check_host_port, listen, listen_address};
pub use compression::CompressionType;
pub(crate) use compression::{compression, compression_algorithms, compression_params, grpc_compression};
pub use keepalive::{ClientKeepalive, ServerKeepalive};
pub(crate) use keepalive::{client_keepalive, server_keepalive};
pub use server::{CorsConfig, GrpcServer, HttpServer};
pub use tls::{ClientTls, KeyPair, PemSource, ServerTls, TlsVersion};
pub(crate) use url::url;

use crate::{
    ComponentId, SecretString,
    decode::{AuthUse, ConnectionSide, Cursor, DecodeReport, FieldReader, id, scalar},
    encode::YamlMap,
    yaml::NodeValue,
};

/// `auth: {authenticator: …}`. The reference is checked after the whole document was read.
pub(crate) fn auth(fields: &mut FieldReader<'_, '_>, side: ConnectionSide) -> Option<ComponentId> {
    let at = fields.find("auth")?;
    let mut auth = FieldReader::new(&at, fields.report);
    let enabled = auth.enabled();
    auth.unsupported(&["request_params"]);
    let place = auth.find("authenticator");
    let id = place.as_ref().and_then(|place| id::reference(place, auth.report));
    match place {
        None if enabled => {
            auth.require(
                "authenticator",
                "`auth` has no `authenticator`",
                Some("set `authenticator` to the id of an extension".into()),
            );
        }
        Some(place) if enabled => auth.report.add_auth_use_at(&place, id.clone(), side),
        _ => {}
    }
    auth.finish();
    id.filter(|_| enabled)
}

/// The section `auth` of an authenticator.
pub(crate) fn encode_auth(id: &ComponentId) -> YamlMap {
    YamlMap::default().with_field("authenticator", id)
}

/// Headers as a list of `{name, value}`, which keeps their order.
pub(crate) fn encode_headers(headers: &[(String, SecretString)]) -> impl Iterator<Item = YamlMap> {
    headers.iter().map(|(name, value)| YamlMap::default().with_field("name", name).with_field("value", value))
}

impl DecodeReport<'_> {
    fn add_auth_use_at(&self, at: &Cursor<'_>, id: Option<ComponentId>, side: ConnectionSide) {
        if let Some(id) = id {
            self.add_auth_use(AuthUse { id, side, path: at.path().to_owned(), span: at.span() });
        }
    }
}

/// Headers: a map of names and values, or a list of `{name, value}`. Sorted by name, as the Collector sorts a
/// map.
pub(crate) fn headers(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<(String, SecretString)>> {
    let mut headers = Vec::new();
    match &at.node.value {
        NodeValue::Map(entries) => {
            report.mark_keys_public(entries);
            for entry in entries {
                let value = at.entry(entry);
                if let Some(secret) = scalar::secret(&value, report) {
                    headers.push(header(&value, report, entry.key.text.clone(), secret));
                }
            }
            headers.sort_by(|a, b| a.as_ref().map(|(name, _)| name).cmp(&b.as_ref().map(|(name, _)| name)));
        }
        NodeValue::Seq(_) => headers.extend(at.items()?.map(|item| pair(&item, report))),
        NodeValue::Null | NodeValue::Bad => {}
        _ => return scalar::wrong_type(at, report, "a map of names and values", None),
    }
    Some(headers.into_iter().flatten().collect())
}

fn pair(at: &Cursor<'_>, report: &DecodeReport) -> Option<(String, SecretString)> {
    let mut fields = FieldReader::new(at, report);
    let name = fields.text("name");
    let value = fields.get_or("value", SecretString::default(), scalar::secret);
    if name.is_none() {
        fields.require("name", "a header needs a name", None);
    }
    fields.finish();
    header(at, report, name?, value)
}

/// Checks that a header can be sent.
fn header(at: &Cursor<'_>, report: &DecodeReport, name: String, value: SecretString) -> Option<(String, SecretString)> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        report.error(at, "the name of the header contains invalid characters", None);
        return None;
    }
    check_header_value(at, report, &value).then_some((name, value))
}

/// Checks that a secret can be the value of a header, and reports it if it cannot.
pub(crate) fn check_header_value(at: &Cursor<'_>, report: &DecodeReport, value: &SecretString) -> bool {
    let bad = value.reveal().chars().any(|c| c.is_control() && c != '\t');
    if bad {
        let help = value
            .reveal()
            .ends_with('\n')
            .then(|| "remove the line break at the end of the value from its source".into());
        report.error(at, "the value contains control characters, which are not allowed in a header", help);
    }
    !bad
}
