//! Kubeconfig files, as far as a client needs them.

use std::path::{Path, PathBuf};

use crate::{
    SecretString,
    yaml::{self, NodeValue, YamlNode},
};

/// The settings of one context of a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KubeconfigContext {
    /// The URL of the API server.
    pub server: String,
    /// `certificate-authority`: the trusted authority; the system's roots if absent.
    pub ca: Option<KubeconfigCredential>,
    pub insecure_skip_verify: bool,
    pub server_name: Option<String>,
    pub certificate: Option<KubeconfigCredential>,
    pub key: Option<KubeconfigCredential>,
    pub token: Option<SecretString>,
    /// `tokenFile`, which wins over `token`.
    pub token_file: Option<PathBuf>,
    pub namespace: Option<String>,
}

/// A certificate or a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeconfigCredential {
    File(PathBuf),
    /// In the kubeconfig itself, as PEM in base64.
    Base64(SecretString),
}

/// Why a kubeconfig cannot be used. The message contains nothing of the file but names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// The file is not YAML.
    #[error("the kubeconfig is not valid YAML: line {0}")]
    Syntax(usize),
    /// Neither the caller nor `current-context` names a context.
    #[error("the kubeconfig has no current-context")]
    NoContext,
    /// A context, cluster or user that is named does not exist.
    #[error("the kubeconfig has no {0} \"{1}\"")]
    Missing(&'static str, String),
    #[error("the cluster \"{0}\" has no server")]
    NoServer(String),
    /// The user needs another program or a password.
    #[error("the user \"{0}\" authenticates with `{1}`, which is not supported: use a token or a client certificate")]
    Unsupported(String, &'static str),
}

impl KubeconfigContext {
    /// Parses one context of a kubeconfig: the given one, or the current one. Relative paths are relative to
    /// `directory`, which is that of the file.
    pub fn parse(text: &str, directory: &Path, context: Option<&str>) -> Result<Self, KubeconfigError> {
        let mut faults = Vec::new();
        let root = yaml::parse(text, &mut faults);
        let (Some(root), None) = (root, faults.first()) else {
            return Err(KubeconfigError::Syntax(faults.first().map_or(1, |fault| fault.span.line)));
        };
        let context = context.filter(|name| !name.is_empty()).or_else(|| string(&root, "current-context"));
        let context = find_named_entry(&root, "contexts", "context", context.ok_or(KubeconfigError::NoContext)?)?;
        let cluster_name = string(context, "cluster").unwrap_or_default();
        let cluster = find_named_entry(&root, "clusters", "cluster", cluster_name)?;
        let server = string(cluster, "server").ok_or_else(|| KubeconfigError::NoServer(cluster_name.to_owned()))?;
        let mut config = Self {
            server: server.to_owned(),
            ca: material(cluster, "certificate-authority", "certificate-authority-data", directory),
            insecure_skip_verify: matches!(
                get(cluster, "insecure-skip-tls-verify").map(|node| &node.value),
                Some(NodeValue::Bool(true))
            ),
            server_name: string(cluster, "tls-server-name").map(str::to_owned),
            namespace: string(context, "namespace").map(str::to_owned),
            ..Self::default()
        };
        if let Some(name) = string(context, "user") {
            config.read_user_credentials(find_named_entry(&root, "users", "user", name)?, name, directory)?;
        }
        Ok(config)
    }

    fn read_user_credentials(&mut self, user: &YamlNode, name: &str, directory: &Path) -> Result<(), KubeconfigError> {
        for way in ["exec", "auth-provider", "username"] {
            if get(user, way).is_some() {
                return Err(KubeconfigError::Unsupported(name.to_owned(), way));
            }
        }
        self.certificate = material(user, "client-certificate", "client-certificate-data", directory);
        self.key = material(user, "client-key", "client-key-data", directory);
        self.token = string(user, "token").map(SecretString::new);
        self.token_file = string(user, "tokenFile").map(|path| directory.join(path));
        Ok(())
    }
}

fn get<'a>(node: &'a YamlNode, key: &str) -> Option<&'a YamlNode> {
    match &node.value {
        NodeValue::Map(entries) => entries.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value),
        _ => None,
    }
}

fn string<'a>(node: &'a YamlNode, key: &str) -> Option<&'a str> {
    match &get(node, key)?.value {
        NodeValue::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// The entry of a list with this name.
fn find_named_entry<'a>(
    root: &'a YamlNode,
    list: &str,
    kind: &'static str,
    name: &str,
) -> Result<&'a YamlNode, KubeconfigError> {
    let items = match get(root, list).map(|node| &node.value) {
        Some(NodeValue::Seq(items)) => items.as_slice(),
        _ => &[],
    };
    let found = items.iter().find(|item| string(item, "name") == Some(name)).and_then(|item| get(item, kind));
    found.ok_or_else(|| KubeconfigError::Missing(kind, name.to_owned()))
}

/// Data in the kubeconfig takes precedence over a file, as in kubectl.
fn material(node: &YamlNode, file: &str, data: &str, directory: &Path) -> Option<KubeconfigCredential> {
    let inline = string(node, data).map(|text| KubeconfigCredential::Base64(SecretString::new(text)));
    inline.or_else(|| string(node, file).map(|path| KubeconfigCredential::File(directory.join(path))))
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
        let here = KubeconfigContext::parse(TWO, Path::new("/home"), None).unwrap();
        assert_eq!(here.server, "https://one:6443");
        assert_eq!(here.ca, Some(KubeconfigCredential::Base64(SecretString::new("Q0E="))));
        assert_eq!(here.certificate, Some(KubeconfigCredential::Base64(SecretString::new("Q0VSVA=="))));
        assert_eq!(here.key, Some(KubeconfigCredential::File("/keys/key.pem".into())));
        assert_eq!(here.namespace.as_deref(), Some("mine"));
        let there = KubeconfigContext::parse(TWO, Path::new("/home"), Some("there")).unwrap();
        assert_eq!(there.ca, Some(KubeconfigCredential::File("/home/ca.pem".into())));
        assert_eq!(there.server_name.as_deref(), Some("kubernetes"));
        assert_eq!(there.token, Some(SecretString::new("s3cret")));
        assert_eq!(there.token_file, Some("/home/token".into()));
    }

    #[test]
    fn what_is_wrong_is_said_without_what_is_in_it() {
        let error = |text, context| KubeconfigContext::parse(text, Path::new("."), context).unwrap_err().to_string();
        assert_eq!(error(TWO, Some("nowhere")), "the kubeconfig has no context \"nowhere\"");
        assert_eq!(error(TWO, Some("lost")), "the kubeconfig has no cluster \"three\"");
        assert!(error(TWO, Some("cloud")).contains("`exec`, which is not supported"));
        assert_eq!(error("{}", None), "the kubeconfig has no current-context");
        assert!(error("a: [s3cret", None).starts_with("the kubeconfig is not valid YAML: line "));
    }
}
