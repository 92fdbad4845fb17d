//! `--feature-gates`.

use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// `APIServerTracing`: tracing, including the propagation of contexts.
    pub tracing: bool,
}

/// Why a text is not a list of gates, with kube-apiserver's messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    #[error("unrecognized feature gate: {0} (known: APIServerTracing)")]
    Unknown(String),
    #[error("missing bool value for {0}")]
    Missing(String),
    #[error("invalid value of {gate}={value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax")]
    Value { gate: String, value: String },
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self { tracing: true }
    }
}

impl FromStr for FeatureGates {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let mut gates = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (gate, value) = pair.split_once('=').ok_or_else(|| GateError::Missing(pair.to_owned()))?;
            let wrong = || GateError::Value { gate: gate.trim().to_owned(), value: value.trim().to_owned() };
            let value = parse_bool(value.trim()).ok_or_else(wrong)?;
            match gate.trim() {
                "APIServerTracing" => gates.tracing = value,
                other => return Err(GateError::Unknown(other.to_owned())),
            }
        }
        Ok(gates)
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_as_kube_apiserver_reads_them() {
        assert_eq!("APIServerTracing=false".parse(), Ok(FeatureGates { tracing: false }));
        assert_eq!(" APIServerTracing = T ,".parse(), Ok(FeatureGates { tracing: true }));
        let refused = |text: &str| text.parse::<FeatureGates>().unwrap_err().to_string();
        assert!(refused("Other=true").starts_with("unrecognized feature gate: Other"));
        assert_eq!(refused("APIServerTracing"), "missing bool value for APIServerTracing");
        assert!(refused("APIServerTracing=yes").contains(r#"parsing "yes": invalid syntax"#));
    }
}
