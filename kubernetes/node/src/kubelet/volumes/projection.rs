//! The content of written volumes: each of them is handled as a projected volume.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, DownwardAPIVolumeFile, KeyToPath, Pod, SecretProjection, ServiceAccountTokenProjection,
    Volume, VolumeProjection,
};

use super::VolumeErrorCause;
use crate::kubelet::{
    downward,
    node_facts::NodeFacts,
    sources::{SourceKind, SourceReader, SourceRef},
    tokens::{TokenManager, TokenSpec},
};

/// The default mode of files.
const DEFAULT_FILE_MODE: i32 = 0o644;
/// The default lifetime of tokens.
const DEFAULT_TOKEN_LIFETIME_SECONDS: i64 = 3600;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct FileProjection {
    pub(super) mode: u32,
    pub(super) content: Vec<u8>,
}

/// Files by their paths in the volume.
pub(super) type Payload = BTreeMap<String, FileProjection>;

/// The sources of a volume's files. Later ones override earlier ones.
#[derive(Clone, Debug)]
pub(super) struct ProjectedFiles {
    pub(super) mode: i32,
    pub(super) sources: Vec<ProjectedSource>,
}

#[derive(Clone, Debug)]
pub(super) enum ProjectedSource {
    Content { kind: SourceKind, name: String, items: Vec<KeyToPath>, optional: bool },
    Downward(Vec<DownwardAPIVolumeFile>),
    Token(ServiceAccountTokenProjection),
}

/// The inputs of a payload.
#[derive(Clone, Debug)]
pub(super) struct ProjectionContext {
    pub(super) node: Arc<NodeFacts>,
    pub(super) sources: Arc<SourceReader>,
}

impl From<ConfigMapProjection> for ProjectedSource {
    fn from(map: ConfigMapProjection) -> Self {
        let ConfigMapProjection { name, items, optional } = map;
        let items = items.unwrap_or_default();
        let optional = optional == Some(true);
        Self::Content { kind: SourceKind::ConfigMap, name, items, optional }
    }
}

impl From<SecretProjection> for ProjectedSource {
    fn from(secret: SecretProjection) -> Self {
        let SecretProjection { name, items, optional } = secret;
        let items = items.unwrap_or_default();
        let optional = optional == Some(true);
        Self::Content { kind: SourceKind::Secret, name, items, optional }
    }
}

impl ProjectedSource {
    fn from_projection(source: &VolumeProjection) -> Result<Self, VolumeErrorCause> {
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
        let known = "this node supports only projections of configMap, secret, downwardAPI and serviceAccountToken";
        Err(VolumeErrorCause::Refused(known.to_owned()))
    }
}

impl ProjectedFiles {
    /// The projection of a written volume; `None` for other volumes.
    pub(super) fn from_volume(volume: &Volume) -> Result<Option<Self>, VolumeErrorCause> {
        let (mode, parts) = if let Some(map) = &volume.config_map {
            let map = map.clone();
            let mode = map.default_mode;
            let name = map.name;
            let items = map.items;
            (mode, vec![ConfigMapProjection { name, items, optional: map.optional }.into()])
        } else if let Some(secret) = &volume.secret {
            let secret = secret.clone();
            let mode = secret.default_mode;
            let name = secret.secret_name.unwrap_or_default();
            let items = secret.items;
            (mode, vec![SecretProjection { name, items, optional: secret.optional }.into()])
        } else if let Some(downward) = &volume.downward_api {
            (downward.default_mode, vec![ProjectedSource::Downward(downward.items.clone().unwrap_or_default())])
        } else if let Some(projected) = &volume.projected {
            let parts = projected.sources.iter().flatten().map(ProjectedSource::from_projection);
            (projected.default_mode, parts.collect::<Result<_, _>>()?)
        } else {
            return Ok(None);
        };
        Ok(Some(Self { mode: mode.unwrap_or(DEFAULT_FILE_MODE), sources: parts }))
    }

    /// The objects whose changes affect the files.
    pub(super) fn source_refs<'a>(&'a self, namespace: &'a str, pod: &'a str) -> impl Iterator<Item = SourceRef> + 'a {
        self.sources.iter().filter_map(move |part| match part {
            ProjectedSource::Content { kind, name, .. } => Some(SourceRef::new(*kind, namespace, name)),
            ProjectedSource::Downward(_) => Some(SourceRef::new(SourceKind::Pod, namespace, pod)),
            ProjectedSource::Token(_) => None,
        })
    }

    /// Reads the current content of the files.
    pub(super) async fn read_payload(
        &self,
        pod: &Pod,
        around: &ProjectionContext,
        tokens: &mut TokenManager,
    ) -> Result<Payload, VolumeErrorCause> {
        let mut payload = Payload::new();
        for part in &self.sources {
            match part {
                ProjectedSource::Content { kind, name, items, optional } => {
                    let of = SourceRef::new(*kind, pod.metadata.namespace.as_deref().unwrap_or_default(), name);
                    self.add_content(of, items, *optional, around, &mut payload).await?;
                }
                ProjectedSource::Downward(items) => {
                    for item in items {
                        let text = downward_text(pod, around, item)?;
                        payload.insert(item.path.clone(), self.file(item.mode, text));
                    }
                }
                ProjectedSource::Token(wanted) => {
                    let text = request_token(wanted, tokens).await?;
                    payload.insert(wanted.path.clone(), self.file(None, text));
                }
            }
        }
        Ok(payload)
    }

    fn file(&self, mode: Option<i32>, content: impl Into<Vec<u8>>) -> FileProjection {
        let mode = u32::try_from(mode.unwrap_or(self.mode)).unwrap_or_default() & 0o777;
        FileProjection { mode, content: content.into() }
    }

    async fn add_content(
        &self,
        of: SourceRef,
        items: &[KeyToPath],
        optional: bool,
        around: &ProjectionContext,
        payload: &mut Payload,
    ) -> Result<(), VolumeErrorCause> {
        let Some(content) = around.sources.read_data(&of).await? else {
            return if optional { Ok(()) } else { Err(VolumeErrorCause::Missing(of)) };
        };
        if items.is_empty() {
            payload.extend(content.iter().map(|(key, value)| (key.to_owned(), self.file(None, value))));
        }
        for item in items {
            match content.get(&item.key) {
                Some(value) => drop(payload.insert(item.path.clone(), self.file(item.mode, value))),
                None if optional => {}
                None => return Err(missing_key_cause(of, &item.key)),
            }
        }
        Ok(())
    }
}

fn missing_key_cause(of: SourceRef, key: &str) -> VolumeErrorCause {
    let text = match of.kind {
        SourceKind::ConfigMap => format!("configmap references non-existent config key: {key}"),
        _ => format!("references non-existent secret key: {key}"),
    };
    VolumeErrorCause::Waits(text, of)
}

fn downward_text(
    pod: &Pod,
    around: &ProjectionContext,
    item: &DownwardAPIVolumeFile,
) -> Result<String, VolumeErrorCause> {
    let text = match (&item.field_ref, &item.resource_field_ref) {
        (Some(field), _) => downward::resolve_field_ref(pod, &around.node, None, &field.field_path),
        (None, Some(resource)) => downward::resolve_resource_field_ref(pod, &around.node, None, resource),
        (None, None) => Err(format!("{}: neither fieldRef nor resourceFieldRef is set", item.path)),
    };
    text.map_err(VolumeErrorCause::Refused)
}

async fn request_token(
    wanted: &ServiceAccountTokenProjection,
    tokens: &mut TokenManager,
) -> Result<String, VolumeErrorCause> {
    let audience = wanted.audience.clone().filter(|audience| !audience.is_empty());
    let wanted = TokenSpec { audience, seconds: wanted.expiration_seconds.unwrap_or(DEFAULT_TOKEN_LIFETIME_SECONDS) };
    let account = SourceRef { kind: SourceKind::ServiceAccount, key: tokens.account().clone() };
    tokens.get_token(&wanted).await.map_err(|error| VolumeErrorCause::Token(account, error))
}
