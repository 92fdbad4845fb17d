//! What is to be in a volume that is written: every such volume is a projected one.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, DownwardAPIVolumeFile, KeyToPath, Pod, SecretProjection, ServiceAccountTokenProjection,
    Volume, VolumeProjection,
};

use super::Cause;
use crate::kubelet::{
    downward,
    facts::NodeFacts,
    sources::{Kind, Ref, Sources},
    tokens::{Tokens, Wanted},
};

/// The mode of files about which nothing is said.
const MODE: i32 = 0o644;
/// How long tokens are good for about which nothing is said.
const TOKEN_SECONDS: i64 = 3600;

/// A file to write.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) mode: u32,
    pub(super) content: Vec<u8>,
}

/// Files by their paths in the volume.
pub(super) type Payload = BTreeMap<String, File>;

/// How the files of a volume are made. Later parts win.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) mode: i32,
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Content { kind: Kind, name: String, items: Vec<KeyToPath>, optional: bool },
    Downward(Vec<DownwardAPIVolumeFile>),
    Token(ServiceAccountTokenProjection),
}

/// What payloads are made with.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    pub(super) node: Arc<NodeFacts>,
    pub(super) sources: Arc<Sources>,
}

impl From<ConfigMapProjection> for Part {
    fn from(map: ConfigMapProjection) -> Self {
        let ConfigMapProjection { name, items, optional } = map;
        let (items, optional) = (items.unwrap_or_default(), optional == Some(true));
        Self::Content { kind: Kind::ConfigMap, name, items, optional }
    }
}

impl From<SecretProjection> for Part {
    fn from(secret: SecretProjection) -> Self {
        let SecretProjection { name, items, optional } = secret;
        let (items, optional) = (items.unwrap_or_default(), optional == Some(true));
        Self::Content { kind: Kind::Secret, name, items, optional }
    }
}

impl Part {
    fn projected(source: &VolumeProjection) -> Result<Self, Cause> {
        if let Some(map) = &source.config_map {
            return Ok(map.clone().into());
        }
        if let Some(secret) = &source.secret {
            return Ok(secret.clone().into());
        }
        if let Some(downward) = &source.downward_api {
            return Ok(Self::Downward(downward.items.clone().unwrap_or_default()));
        }
        if let Some(token) = &source.service_account_token {
            return Ok(Self::Token(token.clone()));
        }
        let known = "this node projects configMap, secret, downwardAPI and serviceAccountToken only";
        Err(Cause::Refused(known.to_owned()))
    }
}

impl Recipe {
    /// Of a volume that is written; `None` if it is none.
    pub(super) fn of(volume: &Volume) -> Result<Option<Self>, Cause> {
        let (mode, parts) = if let Some(map) = &volume.config_map {
            let map = map.clone();
            let (mode, name, items) = (map.default_mode, map.name, map.items);
            (mode, vec![ConfigMapProjection { name, items, optional: map.optional }.into()])
        } else if let Some(secret) = &volume.secret {
            let secret = secret.clone();
            let (mode, name, items) = (secret.default_mode, secret.secret_name.unwrap_or_default(), secret.items);
            (mode, vec![SecretProjection { name, items, optional: secret.optional }.into()])
        } else if let Some(downward) = &volume.downward_api {
            (downward.default_mode, vec![Part::Downward(downward.items.clone().unwrap_or_default())])
        } else if let Some(projected) = &volume.projected {
            let parts = projected.sources.iter().flatten().map(Part::projected);
            (projected.default_mode, parts.collect::<Result<_, _>>()?)
        } else {
            return Ok(None);
        };
        Ok(Some(Self { mode: mode.unwrap_or(MODE), parts }))
    }

    /// The objects whose changes change the files.
    pub(super) fn needs<'a>(&'a self, namespace: &'a str, pod: &'a str) -> impl Iterator<Item = Ref> + 'a {
        self.parts.iter().filter_map(move |part| match part {
            Part::Content { kind, name, .. } => Some(Ref::new(*kind, namespace, name)),
            Part::Downward(_) => Some(Ref::new(Kind::Pod, namespace, pod)),
            Part::Token(_) => None,
        })
    }

    /// The files as they are to be now.
    pub(super) async fn payload(
        &self,
        pod: &Pod,
        around: &Surroundings,
        tokens: &mut Tokens,
    ) -> Result<Payload, Cause> {
        let mut payload = Payload::new();
        for part in &self.parts {
            match part {
                Part::Content { kind, name, items, optional } => {
                    let of = Ref::new(*kind, pod.metadata.namespace.as_deref().unwrap_or_default(), name);
                    self.add_content(of, items, *optional, around, &mut payload).await?;
                }
                Part::Downward(items) => {
                    for item in items {
                        let text = downward_text(pod, around, item)?;
                        payload.insert(item.path.clone(), self.file(item.mode, text));
                    }
                }
                Part::Token(wanted) => {
                    let text = token(wanted, tokens).await?;
                    payload.insert(wanted.path.clone(), self.file(None, text));
                }
            }
        }
        Ok(payload)
    }

    fn file(&self, mode: Option<i32>, content: impl Into<Vec<u8>>) -> File {
        let mode = u32::try_from(mode.unwrap_or(self.mode)).unwrap_or_default() & 0o777;
        File { mode, content: content.into() }
    }

    async fn add_content(
        &self,
        of: Ref,
        items: &[KeyToPath],
        optional: bool,
        around: &Surroundings,
        payload: &mut Payload,
    ) -> Result<(), Cause> {
        let Some(content) = around.sources.read(&of).await? else {
            return if optional { Ok(()) } else { Err(Cause::Missing(of)) };
        };
        if items.is_empty() {
            payload.extend(content.iter().map(|(key, value)| (key.to_owned(), self.file(None, value))));
        }
        for item in items {
            match content.get(&item.key) {
                Some(value) => drop(payload.insert(item.path.clone(), self.file(item.mode, value))),
                None if optional => {}
                None => return Err(no_such_key(of, &item.key)),
            }
        }
        Ok(())
    }
}

fn no_such_key(of: Ref, key: &str) -> Cause {
    let text = match of.kind {
        Kind::ConfigMap => format!("configmap references non-existent config key: {key}"),
        _ => format!("references non-existent secret key: {key}"),
    };
    Cause::Waits(text, of)
}

fn downward_text(pod: &Pod, around: &Surroundings, item: &DownwardAPIVolumeFile) -> Result<String, Cause> {
    let text = match (&item.field_ref, &item.resource_field_ref) {
        (Some(field), _) => downward::field(pod, &around.node, None, &field.field_path),
        (None, Some(resource)) => downward::resource(pod, &around.node, None, resource),
        (None, None) => Err(format!("{}: there is neither a fieldRef nor a resourceFieldRef", item.path)),
    };
    text.map_err(Cause::Refused)
}

async fn token(wanted: &ServiceAccountTokenProjection, tokens: &mut Tokens) -> Result<String, Cause> {
    let audience = wanted.audience.clone().filter(|audience| !audience.is_empty());
    let wanted = Wanted { audience, seconds: wanted.expiration_seconds.unwrap_or(TOKEN_SECONDS) };
    let account = Ref { kind: Kind::ServiceAccount, key: tokens.account().clone() };
    tokens.get(&wanted).await.map_err(|error| Cause::Token(account, error))
}
