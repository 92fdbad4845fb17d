//! Where the API server is, and who we are there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubewake_config::{
    Kubeconfig, Material, Secret,
    model::{ClientTls, KeyPair, PemSource},
    mounted,
};

use crate::components::BuildError;

/// Where a pod finds who it is.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What helps whoever asked for the ways of a pod and is none. They do not look at the variable KUBECONFIG.
const ELSEWHERE_BY_SETTING: &str = "elsewhere set `auth_type: kubeConfig`";

/// How to find the API server.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum AccessSource {
    /// As a pod, or else by the kubeconfig that the environment names.
    #[default]
    Usual,
    /// As a pod: by the service account that it runs as.
    ServiceAccount,
    /// By a kubeconfig: this file or the usual one, and a context of it.
    Kubeconfig { path: Option<PathBuf>, context: Option<String> },
    /// By the variables that a pod has, without credentials.
    Anonymous,
}

/// Where the API server is, and what to show there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// A URL.
    pub(crate) server: String,
    pub(crate) tls: ClientTls,
    pub(crate) token: Token,
    /// The namespace that we are in, if that is known.
    pub(crate) namespace: Option<String>,
}

/// What shows who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// Nothing, or a certificate.
    None,
    /// The same all the time.
    Fixed(Secret),
    /// What is in a file now: the kubelet renews it.
    File(PathBuf),
}

impl Access {
    /// Finds it out. Files are read now; whoever meets a refusal asks again.
    pub(crate) fn find(source: &AccessSource) -> Result<Self, BuildError> {
        match source {
            AccessSource::ServiceAccount => in_cluster(true, ELSEWHERE_BY_SETTING),
            AccessSource::Anonymous => in_cluster(false, ELSEWHERE_BY_SETTING),
            AccessSource::Kubeconfig { path, context } => {
                let path = path.clone().or_else(usual_kubeconfig);
                by_kubeconfig(&path.ok_or_else(no_kubeconfig)?, context.as_deref())
            }
            AccessSource::Usual => match usual_kubeconfig() {
                Some(path) if !is_pod() => by_kubeconfig(&path, None),
                _ => in_cluster(true, "elsewhere KUBECONFIG names a kubeconfig"),
            },
        }
    }
}

fn no_kubeconfig() -> BuildError {
    BuildError("no kubeconfig was found: set KUBECONFIG, or kube_config_path".into())
}

/// The namespace of the pod that we are, if we are one.
fn own_namespace() -> Option<String> {
    let text = fs::read_to_string(mounted(&Path::new(SERVICE_ACCOUNT).join("namespace"))).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_pod() -> bool {
    variable("KUBERNETES_SERVICE_HOST").is_some() && mounted(&Path::new(SERVICE_ACCOUNT).join("token")).exists()
}

fn in_cluster(with_token: bool, elsewhere: &str) -> Result<Access, BuildError> {
    let missing = || {
        let why = "KUBERNETES_SERVICE_HOST is not set: this is no pod";
        BuildError(format!("the API server is not known: {why}; {elsewhere}"))
    };
    let host = variable("KUBERNETES_SERVICE_HOST").ok_or_else(missing)?;
    let port = variable("KUBERNETES_SERVICE_PORT_HTTPS").or_else(|| variable("KUBERNETES_SERVICE_PORT"));
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let directory = Path::new(SERVICE_ACCOUNT);
    let ca = directory.join("ca.crt");
    Ok(Access {
        server: format!("https://{host}:{}", port.as_deref().unwrap_or("443")),
        tls: ClientTls { ca: mounted(&ca).exists().then_some(PemSource::File(ca)), ..ClientTls::default() },
        token: if with_token { Token::File(directory.join("token")) } else { Token::None },
        namespace: own_namespace(),
    })
}

/// The first file that `KUBECONFIG` names and that is there, or else the one in the home directory.
fn usual_kubeconfig() -> Option<PathBuf> {
    if let Some(list) = std::env::var_os("KUBECONFIG") {
        return std::env::split_paths(&list).find(|path| mounted(path).exists());
    }
    let home = PathBuf::from(std::env::var_os("HOME")?).join(".kube/config");
    home.exists().then_some(home)
}

fn by_kubeconfig(path: &Path, context: Option<&str>) -> Result<Access, BuildError> {
    let bad = |what: String| BuildError(format!("the kubeconfig {}: {what}", path.display()));
    let text = fs::read_to_string(mounted(path)).map_err(|error| bad(error.to_string()))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let config = Kubeconfig::parse(&text, directory, context).map_err(|error| bad(error.to_string()))?;
    let pem = |material: Option<Material>| material.map(|material| pem(material).map_err(|what| bad(what.into())));
    let (ca, certificate, key) = (pem(config.ca), pem(config.certificate), pem(config.key));
    let identity = match (certificate.transpose()?, key.transpose()?) {
        (Some(cert), Some(key)) => Some(KeyPair { cert, key }),
        (None, None) => None,
        _ => return Err(bad("a client certificate needs its key, and a key its certificate".into())),
    };
    Ok(Access {
        server: config.server,
        tls: ClientTls {
            ca: ca.transpose()?,
            identity,
            insecure_skip_verify: config.insecure_skip_verify,
            server_name_override: config.server_name,
            ..ClientTls::default()
        },
        token: match (config.token_file, config.token) {
            (Some(file), _) => Token::File(file),
            (None, Some(token)) => Token::Fixed(token),
            (None, None) => Token::None,
        },
        namespace: config.namespace,
    })
}

fn pem(material: Material) -> Result<PemSource, &'static str> {
    let text = match material {
        Material::File(path) => return Ok(PemSource::File(path)),
        Material::Base64(text) => text,
    };
    let decoded = STANDARD.decode(text.reveal().trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(|text| PemSource::Inline(Secret::new(text))).ok_or("a certificate or key is not PEM in base64")
}
