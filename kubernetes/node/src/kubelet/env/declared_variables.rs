//! The variables that a container declares.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, EnvVarSource};

use super::{ConfigError, ContainerInputs, EnvVariables, ROOT_VARIABLE, source_ref};
use crate::kubelet::{
    downward,
    sources::{SourceData, SourceKind, SourceRef},
};

/// Adds the variables of `envFrom` and `env`; later ones override earlier ones. References see earlier
/// variables.
pub(super) async fn add_declared_variables(
    inputs: &ContainerInputs<'_>,
    variables: &mut EnvVariables,
) -> Result<(), ConfigError> {
    for from in inputs.container.env_from.iter().flatten() {
        add_all_of(inputs, from, variables).await?;
    }
    for variable in inputs.container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (_, Some(from)) => value_from(inputs, variable, from).await?,
            (value, None) => Some(variables.expand(value.as_deref().unwrap_or_default())?),
        };
        if let Some(value) = value {
            set_variable(variables, variable.name.clone(), value)?;
        }
    }
    Ok(())
}

/// Ignores the variable of the root, which belongs to the node.
fn set_variable(variables: &mut EnvVariables, name: String, value: String) -> Result<(), ConfigError> {
    if name == ROOT_VARIABLE { Ok(()) } else { Ok(variables.set(name, value)?) }
}

/// Checks that names and values are valid for a process.
pub(super) fn check_variables(variables: &BTreeMap<String, String>) -> Result<(), ConfigError> {
    let wrong = |name: &String, why: &str| Err(ConfigError::Variable { name: name.clone(), why: why.to_owned() });
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(name, "a name must not be empty, and must not contain \"=\" or a zero byte");
        }
        if value.contains('\0') {
            return wrong(name, "the value contains a zero byte; mount it as a file");
        }
    }
    Ok(())
}

async fn add_all_of(
    inputs: &ContainerInputs<'_>,
    from: &EnvFromSource,
    variables: &mut EnvVariables,
) -> Result<(), ConfigError> {
    let (of, optional) = match (&from.config_map_ref, &from.secret_ref) {
        (Some(map), _) => (source_ref(inputs.pod, SourceKind::ConfigMap, &map.name), map.optional),
        (None, Some(secret)) => (source_ref(inputs.pod, SourceKind::Secret, &secret.name), secret.optional),
        (None, None) => return Ok(()),
    };
    let Some(content) = read_source(inputs, &of, optional).await? else { return Ok(()) };
    let prefix = from.prefix.as_deref().unwrap_or_default();
    content
        .iter()
        .try_for_each(|(key, value)| set_variable(variables, format!("{prefix}{key}"), decode_text(&of, key, value)?))
}

/// The referenced value; none if it is missing and optional.
async fn value_from(
    inputs: &ContainerInputs<'_>,
    variable: &EnvVar,
    from: &EnvVarSource,
) -> Result<Option<String>, ConfigError> {
    let ContainerInputs { pod, container, node, pod_ip, .. } = *inputs;
    let wrong = |why| ConfigError::Variable { name: variable.name.clone(), why };
    if let Some(field) = &from.field_ref {
        return downward::resolve_field_ref(pod, node, Some(pod_ip), &field.field_path).map(Some).map_err(wrong);
    }
    if let Some(resource) = &from.resource_field_ref {
        return downward::resolve_resource_field_ref(pod, node, Some(container), resource).map(Some).map_err(wrong);
    }
    if let Some(map) = &from.config_map_key_ref {
        return key_value(inputs, source_ref(pod, SourceKind::ConfigMap, &map.name), &map.key, map.optional).await;
    }
    if let Some(secret) = &from.secret_key_ref {
        return key_value(inputs, source_ref(pod, SourceKind::Secret, &secret.name), &secret.key, secret.optional)
            .await;
    }
    Err(wrong("this node supports fieldRef, resourceFieldRef, configMapKeyRef and secretKeyRef".to_owned()))
}

async fn key_value(
    inputs: &ContainerInputs<'_>,
    of: SourceRef,
    key: &str,
    optional: Option<bool>,
) -> Result<Option<String>, ConfigError> {
    let Some(content) = read_source(inputs, &of, optional).await? else { return Ok(None) };
    match content.get(key) {
        Some(value) => decode_text(&of, key, value).map(Some),
        None if optional == Some(true) => Ok(None),
        None => Err(ConfigError::MissingKey { of, key: key.to_owned() }),
    }
}

async fn read_source(
    inputs: &ContainerInputs<'_>,
    of: &SourceRef,
    optional: Option<bool>,
) -> Result<Option<Arc<SourceData>>, ConfigError> {
    match inputs.sources.read_data(of).await? {
        None if optional != Some(true) => Err(ConfigError::Missing(of.clone())),
        content => Ok(content),
    }
}

fn decode_text(of: &SourceRef, key: &str, value: &[u8]) -> Result<String, ConfigError> {
    let text = str::from_utf8(value).map(str::to_owned);
    text.map_err(|_| ConfigError::NotText { of: of.clone(), key: key.to_owned() })
}
