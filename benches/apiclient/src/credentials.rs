//! Reads the kubeconfig of `kubewake apiserver`, and no other dialect of YAML.

use std::path::Path;

use anyhow::Context;
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The server's address, and the client's credentials in PEM.
pub(crate) struct AdminCredentials {
    pub address: String,
    pub authority: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

pub(crate) fn read_credentials(path: &Path) -> anyhow::Result<AdminCredentials> {
    let text = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    let field = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        values.next().with_context(|| format!("the kubeconfig has no {name}"))
    };
    let decoded = |name| anyhow::Ok(STANDARD.decode(field(name)?)?);
    let server = field("server")?.trim_matches('"');
    Ok(AdminCredentials {
        address: server.trim_start_matches("https://").to_owned(),
        authority: decoded("certificate-authority-data")?,
        certificate: decoded("client-certificate-data")?,
        key: decoded("client-key-data")?,
    })
}
