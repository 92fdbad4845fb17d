//! What a kubeconfig of `kubewake apiserver` says. Any other may be written in ways that this does not read.

use std::path::Path;

use anyhow::Context;
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Where the server is and how to show who asks, in PEM.
pub(crate) struct Credentials {
    pub address: String,
    pub authority: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

/// Reads it.
pub(crate) fn read(path: &Path) -> anyhow::Result<Credentials> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let field = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        values.next().with_context(|| format!("the kubeconfig has no {name}"))
    };
    let decoded = |name| anyhow::Ok(STANDARD.decode(field(name)?)?);
    let server = field("server")?.trim_matches('"');
    Ok(Credentials {
        address: server.trim_start_matches("https://").to_owned(),
        authority: decoded("certificate-authority-data")?,
        certificate: decoded("client-certificate-data")?,
        key: decoded("client-key-data")?,
    })
}
