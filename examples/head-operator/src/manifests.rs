//! The custom resource definitions, generated from the types.

use kube::CustomResourceExt;

use crate::api::{ChildA, Head};

/// Both definitions as one YAML file.
pub fn crds_yaml() -> Result<String, serde_saphyr::ser::Error> {
    let heading = "# Made from the types by `head-operator crds`.\n";
    let documents = [Head::crd(), ChildA::crd()].iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{heading}{}", documents.join("---\n")))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    #[test]
    fn what_is_committed_is_what_the_types_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/crds.yaml");
        let made = super::crds_yaml().unwrap();
        if std::env::var_os("UPDATE_MANIFESTS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let committed = fs::read_to_string(path).unwrap_or_default();
        assert_eq!(committed, made, "write it again with UPDATE_MANIFESTS=1");
    }
}
