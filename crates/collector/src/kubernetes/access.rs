//! Discovers the API server and the credentials for it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubewake_config::{
    KubeconfigContext, KubeconfigCredential, SecretString,
    model::{ClientTls, KeyPair, PemSource, ServiceAccountFiles},
};

use crate::components::BuildError;

/// Hint for in-cluster access outside of a pod, which ignores the variable KUBECONFIG.
const KUBECONFIG_SETTING_HINT: &str = "outside a pod, set `auth_type: kubeConfig`";

/// How to find the API server.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum AccessSource {
    /// In-cluster, or else by the kubeconfig that the environment names.
    #[default]
    Inferred,
    /// In-cluster, as the pod's service account.
    ServiceAccount,
    /// By a kubeconfig: this file or the default one, and one of its contexts.
    Kubeconfig { path: Option<PathBuf>, context: Option<String> },
    /// By the environment variables of a pod, without credentials.
    Anonymous,
}

/// Address of the API server, and the credentials for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterAccess {
    pub(crate) server: String,
    pub(crate) tls: ClientTls,
    pub(crate) token: BearerToken,
    /// The pod's own namespace, if known.
    pub(crate) namespace: Option<String>,
}

/// Credentials for the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BearerToken {
    None,
    /// A constant token.
    Fixed(SecretString),
    /// The current content of a file: the kubelet renews it.
    File(PathBuf),
}

impl ClusterAccess {
    /// Discovers the access. Files are read now; after a refusal the caller discovers again.
    pub(crate) fn discover(source: &AccessSource, account: &ServiceAccountFiles) -> Result<Self, BuildError> {
        match source {
            AccessSource::ServiceAccount => from_pod_environment(account, true, KUBECONFIG_SETTING_HINT),
            AccessSource::Anonymous => from_pod_environment(account, false, KUBECONFIG_SETTING_HINT),
            AccessSource::Kubeconfig { path, context } => {
                let path = path.clone().or_else(default_kubeconfig);
                from_kubeconfig(&path.ok_or_else(no_kubeconfig)?, context.as_deref())
            }
            AccessSource::Inferred => match default_kubeconfig() {
                Some(path) if !is_pod(account) => from_kubeconfig(&path, None),
                _ => from_pod_environment(account, true, "outside a pod, set KUBECONFIG"),
            },
        }
    }
}

fn no_kubeconfig() -> BuildError {
    BuildError("no kubeconfig was found: set KUBECONFIG, or kube_config_path".into())
}

/// The namespace of the pod that this process runs in, if any.
fn own_namespace(account: &ServiceAccountFiles) -> Option<String> {
    let text = fs::read_to_string(account.namespace()).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_pod(account: &ServiceAccountFiles) -> bool {
    variable("KUBERNETES_SERVICE_HOST").is_some() && account.token().exists()
}

fn from_pod_environment(
    account: &ServiceAccountFiles,
    with_token: bool,
    elsewhere: &str,
) -> Result<ClusterAccess, BuildError> {
    let missing = || {
        let why = "KUBERNETES_SERVICE_HOST is not set";
        BuildError(format!("failed to find the API server: {why}; {elsewhere}"))
    };
    let host = variable("KUBERNETES_SERVICE_HOST").ok_or_else(missing)?;
    let port = variable("KUBERNETES_SERVICE_PORT_HTTPS").or_else(|| variable("KUBERNETES_SERVICE_PORT"));
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let ca = account.certificate_authority();
    Ok(ClusterAccess {
        server: format!("https://{host}:{}", port.as_deref().unwrap_or("443")),
        tls: ClientTls { ca: ca.exists().then_some(PemSource::File(ca)), ..ClientTls::default() },
        token: if with_token { BearerToken::File(account.token()) } else { BearerToken::None },
        namespace: own_namespace(account),
    })
}

/// The first existing file that `KUBECONFIG` names, or else the one in the home directory.
fn default_kubeconfig() -> Option<PathBuf> {
    if let Some(list) = std::env::var_os("KUBECONFIG") {
        return std::env::split_paths(&list).find(|path| path.exists());
    }
    let home = PathBuf::from(std::env::var_os("HOME")?).join(".kube/config");
    home.exists().then_some(home)
}

fn from_kubeconfig(path: &Path, context: Option<&str>) -> Result<ClusterAccess, BuildError> {
    let bad = |what: String| BuildError(format!("failed to read the kubeconfig {}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let config = KubeconfigContext::parse(&text, directory, context).map_err(|error| bad(error.to_string()))?;
    let pem = |material: Option<KubeconfigCredential>| {
        material.map(|material| pem(material).map_err(|what| bad(what.into())))
    };
    let ca = pem(config.ca);
    let certificate = pem(config.certificate);
    let key = pem(config.key);
    let identity = match (certificate.transpose()?, key.transpose()?) {
        (Some(cert), Some(key)) => Some(KeyPair { cert, key }),
        (None, None) => None,
        _ => return Err(bad("a client certificate and its key must both be set".into())),
    };
    Ok(ClusterAccess {
        server: config.server,
        tls: ClientTls {
            ca: ca.transpose()?,
            identity,
            insecure_skip_verify: config.insecure_skip_verify,
            server_name_override: config.server_name,
            ..ClientTls::default()
        },
        token: match (config.token_file, config.token) {
            (Some(file), _) => BearerToken::File(file),
            (None, Some(token)) => BearerToken::Fixed(token),
            (None, None) => BearerToken::None,
        },
        namespace: config.namespace,
    })
}

fn pem(material: KubeconfigCredential) -> Result<PemSource, &'static str> {
    let text = match material {
        KubeconfigCredential::File(path) => return Ok(PemSource::File(path)),
        KubeconfigCredential::Base64(text) => text,
    };
    let decoded = STANDARD.decode(text.reveal().trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(|text| PemSource::Inline(SecretString::new(text))).ok_or("a certificate or key is not PEM in base64")
}
