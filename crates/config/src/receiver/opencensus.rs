//! `opencensus`.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use crate::{
    ComponentId,
    component::{ComponentSettings, ReceiverSettings, ServerContext},
    decode::{Cursor, DecodeReport, FieldReader},
    encode::YamlMap,
    network::{
        CorsConfig, GrpcServer, ServerTls,
        server::{grpc_server, origins},
    },
};

/// `opencensus`: gRPC and JSON over HTTP, both on one address.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCensusReceiver {
    /// Its settings are those of a gRPC server.
    pub server: GrpcServer,
    pub cors: Option<CorsConfig>,
}

impl Default for OpenCensusReceiver {
    fn default() -> Self {
        Self { server: GrpcServer { endpoint: "localhost:55678".into(), ..GrpcServer::default() }, cors: None }
    }
}

impl ComponentSettings for OpenCensusReceiver {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let default = OpenCensusReceiver::default();
        let mut fields = FieldReader::new(at, report);
        let server = grpc_server(&mut fields, default.server);
        let allowed_origins = fields.get("cors_allowed_origins", origins).unwrap_or_default();
        fields.finish();
        let cors = Some(CorsConfig { allowed_origins, ..CorsConfig::default() })
            .filter(|cors| !cors.allowed_origins.is_empty());
        Some(OpenCensusReceiver { server, cors })
    }

    fn encode(&self) -> YamlMap {
        let origins = self.cors.iter().flat_map(|cors| &cors.allowed_origins);
        self.server.encode(&Self::default().server).with_list("cors_allowed_origins", origins)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.server.tls.as_ref().map(ServerTls::files).unwrap_or_default()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.server.auth.iter().collect()
    }
}

impl ReceiverSettings for OpenCensusReceiver {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Traces]
    }

    fn servers(&self) -> Vec<ServerContext> {
        vec![self.server.context()]
    }
}
