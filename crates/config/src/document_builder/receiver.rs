//! `receivers`

use super::{
    TextSource,
    yaml::{YamlMap, YamlValue},
};

#[derive(Clone, Debug, PartialEq)]
pub enum ReceiverSection {
    Otlp(OtlpReceiverSection),
    OpenCensus(TextSource),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtlpReceiverSection {
    pub grpc: Option<TextSource>,
    pub http: Option<TextSource>,
}

impl ReceiverSection {
    pub(super) fn to_value(&self) -> YamlValue {
        let server = |endpoint: &TextSource| YamlMap::default().with_field("endpoint", endpoint);
        match self {
            Self::Otlp(otlp) => {
                let protocols = YamlMap::default()
                    .with_optional("grpc", otlp.grpc.as_ref().map(server))
                    .with_optional("http", otlp.http.as_ref().map(server));
                YamlMap::default().with_field("protocols", protocols).into()
            }
            Self::OpenCensus(endpoint) => server(endpoint).into(),
        }
    }
}
