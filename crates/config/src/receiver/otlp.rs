//! `otlp`: gRPC and HTTP.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use crate::{
    ComponentId,
    component::{ComponentSettings, ReceiverSettings, ServerContext},
    decode::{Cursor, DecodeReport, FieldReader},
    encode::YamlMap,
    network::{GrpcServer, HttpServer, ServerTls, server},
};

/// `otlp`: at least one of the two protocols is there.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OtlpReceiver {
    pub grpc: Option<GrpcServer>,
    pub http: Option<HttpServer>,
}

impl ComponentSettings for OtlpReceiver {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let mut receiver = OtlpReceiver::default();
        let mut declared = false;
        if let Some(at) = fields.find("protocols") {
            let mut protocols = FieldReader::new(&at, report);
            let grpc = protocols.find_even_empty("grpc");
            let http = protocols.find_even_empty("http");
            declared = grpc.is_some() || http.is_some();
            receiver.grpc = grpc.and_then(|at| server::grpc(&at, report));
            receiver.http = http.and_then(|at| server::http(&at, report));
            protocols.finish();
        }
        if receiver.grpc.is_none() && receiver.http.is_none() {
            let help = if declared {
                "every protocol of the receiver is disabled"
            } else {
                "add `grpc:` or `http:` under `protocols`"
            };
            fields.require("protocols", "the receiver needs at least one protocol", Some(help.into()));
        }
        fields.finish();
        Some(receiver)
    }

    fn encode(&self) -> YamlMap {
        let protocols = YamlMap::default()
            .with_optional("grpc", self.grpc.as_ref().map(|grpc| grpc.encode(&GrpcServer::default())))
            .with_optional("http", self.http.as_ref().map(HttpServer::encode));
        YamlMap::default().with_field("protocols", protocols)
    }

    fn public_fields() -> &'static [&'static str] {
        &["protocols", "grpc", "http"]
    }

    fn files(&self) -> Vec<PathBuf> {
        let grpc = self.grpc.as_ref().and_then(|server| server.tls.as_ref());
        let http = self.http.as_ref().and_then(|server| server.tls.as_ref());
        grpc.into_iter().chain(http).flat_map(ServerTls::files).collect()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        let grpc = self.grpc.as_ref().and_then(|server| server.auth.as_ref());
        let http = self.http.as_ref().and_then(|server| server.auth.as_ref());
        grpc.into_iter().chain(http).collect()
    }
}

impl ReceiverSettings for OtlpReceiver {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    fn servers(&self) -> Vec<ServerContext> {
        let http = self.http.as_ref();
        let http =
            http.map(|http| ServerContext { sender_identity: http.auth.is_some(), metadata: http.include_metadata });
        self.grpc.as_ref().map(|grpc| grpc.context()).into_iter().chain(http).collect()
    }
}
