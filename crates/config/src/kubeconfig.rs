//! Kubernetes' own file about clusters and who one is there, as far as a client needs it.

use std::path::{Path, PathBuf};

use crate::{
    Secret,
    yaml::{self, Node, Value},
};

/// What a kubeconfig says of one context.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Kubeconfig {
    /// The URL of the API server.
    pub server: String,
    /// `certificate-authority`, whom to trust; the system's roots if absent.
    pub ca: Option<Material>,
    /// `insecure-skip-tls-verify`
    pub insecure_skip_verify: bool,
    /// `tls-server-name`
    pub server_name: Option<String>,
    /// `client-certificate`
    pub certificate: Option<Material>,
    /// `client-key`
    pub key: Option<Material>,
    /// `token`
    pub token: Option<Secret>,
    /// `tokenFile`, which wins over `token`.
    pub token_file: Option<PathBuf>,
    /// The namespace of the context.
    pub namespace: Option<String>,
}

/// A certificate or a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Material {
    /// In a file.
    File(PathBuf),
    /// In the kubeconfig itself, as PEM in base64.
    Base64(Secret),
}

/// Why a kubeconfig cannot be used. It repeats nothing that the file says, but for names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// It cannot be read as YAML.
    #[error("it is not YAML: line {0}")]
    Syntax(usize),
    /// No context is named, by the caller or by `current-context`.
    #[error("it has no current-context")]
    NoContext,
    /// Something that is named is not there.
    #[error("it has no {0} \"{1}\"")]
    Missing(&'static str, String),
    /// A cluster without a server.
    #[error("the cluster \"{0}\" has no server")]
    NoServer(String),
    /// The user signs in in a way that needs another program or a password.
    #[error("the user \"{0}\" signs in by `{1}`, which is not supported: use a token or a certificate")]
    Unsupported(String, &'static str),
}

impl Kubeconfig {
    /// Reads one context of a kubeconfig: the one that is named, or the current one. Relative paths are relative to
    /// `directory`, where the file is.
    pub fn parse(text: &str, directory: &Path, context: Option<&str>) -> Result<Self, KubeconfigError> {
        let mut faults = Vec::new();
        let root = yaml::parse(text, &mut faults);
        let (Some(root), None) = (root, faults.first()) else {
            return Err(KubeconfigError::Syntax(faults.first().map_or(1, |fault| fault.span.line)));
        };
        let context = context.filter(|name| !name.is_empty()).or_else(|| string(&root, "current-context"));
        let context = named(&root, "contexts", "context", context.ok_or(KubeconfigError::NoContext)?)?;
        let cluster_name = string(context, "cluster").unwrap_or_default();
        let cluster = named(&root, "clusters", "cluster", cluster_name)?;
        let server = string(cluster, "server").ok_or_else(|| KubeconfigError::NoServer(cluster_name.to_owned()))?;
        let mut config = Self {
            server: server.to_owned(),
            ca: material(cluster, "certificate-authority", "certificate-authority-data", directory),
            insecure_skip_verify: matches!(
                get(cluster, "insecure-skip-tls-verify").map(|node| &node.value),
                Some(Value::Bool(true))
            ),
            server_name: string(cluster, "tls-server-name").map(str::to_owned),
            namespace: string(context, "namespace").map(str::to_owned),
            ..Self::default()
        };
        if let Some(name) = string(context, "user") {
            config.sign_in(named(&root, "users", "user", name)?, name, directory)?;
        }
        Ok(config)
    }

    fn sign_in(&mut self, user: &Node, name: &str, directory: &Path) -> Result<(), KubeconfigError> {
        for way in ["exec", "auth-provider", "username"] {
            if get(user, way).is_some() {
                return Err(KubeconfigError::Unsupported(name.to_owned(), way));
            }
        }
        self.certificate = material(user, "client-certificate", "client-certificate-data", directory);
        self.key = material(user, "client-key", "client-key-data", directory);
        self.token = string(user, "token").map(Secret::new);
        self.token_file = string(user, "tokenFile").map(|path| directory.join(path));
        Ok(())
    }
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    match &node.value {
        Value::Map(entries) => entries.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value),
        _ => None,
    }
}

fn string<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    match &get(node, key)?.value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// The entry of a list that has this name.
fn named<'a>(root: &'a Node, list: &str, kind: &'static str, name: &str) -> Result<&'a Node, KubeconfigError> {
    let items = match get(root, list).map(|node| &node.value) {
        Some(Value::Seq(items)) => items.as_slice(),
        _ => &[],
    };
    let found = items.iter().find(|item| string(item, "name") == Some(name)).and_then(|item| get(item, kind));
    found.ok_or_else(|| KubeconfigError::Missing(kind, name.to_owned()))
}

/// What is in the file itself wins, as it does for kubectl.
fn material(node: &Node, file: &str, data: &str, directory: &Path) -> Option<Material> {
    let inline = string(node, data).map(|text| Material::Base64(Secret::new(text)));
    inline.or_else(|| string(node, file).map(|path| Material::File(directory.join(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: one, cluster: {server: 'https://one:6443', certificate-authority-data: Q0E=}}
- {name: two, cluster: {server: 'https://two', certificate-authority: ca.pem, tls-server-name: kubernetes}}
contexts:
- {name: here, context: {cluster: one, user: me, namespace: mine}}
- {name: there, context: {cluster: two, user: robot}}
- {name: lost, context: {cluster: three}}
- {name: cloud, context: {cluster: one, user: cloud}}
users:
- {name: me, user: {client-certificate-data: Q0VSVA==, client-key: /keys/key.pem}}
- {name: robot, user: {token: s3cret, tokenFile: token}}
- {name: cloud, user: {exec: {command: sign-in}}}
";

    #[test]
    fn the_current_context_counts_unless_another_is_named() {
        let here = Kubeconfig::parse(TWO, Path::new("/home"), None).unwrap();
        assert_eq!(here.server, "https://one:6443");
        assert_eq!(here.ca, Some(Material::Base64(Secret::new("Q0E="))));
        assert_eq!(here.certificate, Some(Material::Base64(Secret::new("Q0VSVA=="))));
        assert_eq!(here.key, Some(Material::File("/keys/key.pem".into())));
        assert_eq!(here.namespace.as_deref(), Some("mine"));
        let there = Kubeconfig::parse(TWO, Path::new("/home"), Some("there")).unwrap();
        assert_eq!(there.ca, Some(Material::File("/home/ca.pem".into())));
        assert_eq!(there.server_name.as_deref(), Some("kubernetes"));
        assert_eq!(there.token, Some(Secret::new("s3cret")));
        assert_eq!(there.token_file, Some("/home/token".into()));
    }

    #[test]
    fn what_is_wrong_is_said_without_what_is_in_it() {
        let error = |text, context| Kubeconfig::parse(text, Path::new("."), context).unwrap_err().to_string();
        assert_eq!(error(TWO, Some("nowhere")), "it has no context \"nowhere\"");
        assert_eq!(error(TWO, Some("lost")), "it has no cluster \"three\"");
        assert!(error(TWO, Some("cloud")).contains("`exec`, which is not supported"));
        assert_eq!(error("{}", None), "it has no current-context");
        assert!(error("a: [s3cret", None).starts_with("it is not YAML: line "));
    }
}
