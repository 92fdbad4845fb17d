//! `receivers`

use super::{
    Text,
    yaml::{Map, Value},
};

/// A receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum Receiver {
    /// `otlp`
    Otlp(OtlpReceiver),
    /// `opencensus`, with its `endpoint`.
    OpenCensus(Text),
}

/// `otlp`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtlpReceiver {
    /// `protocols: grpc: endpoint`
    pub grpc: Option<Text>,
    /// `protocols: http: endpoint`
    pub http: Option<Text>,
}

impl Receiver {
    pub(super) fn to_value(&self) -> Value {
        let server = |endpoint: &Text| Map::default().with("endpoint", endpoint);
        match self {
            Self::Otlp(otlp) => {
                let protocols = Map::default()
                    .maybe("grpc", otlp.grpc.as_ref().map(server))
                    .maybe("http", otlp.http.as_ref().map(server));
                Map::default().with("protocols", protocols).into()
            }
            Self::OpenCensus(endpoint) => server(endpoint).into(),
        }
    }
}
