//! The canonical codes of gRPC, which components also use among themselves.

use std::fmt;

use http::StatusCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // The names are gRPC's own.
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// All codes, each at the index of its number.
    pub const ALL: [Code; 17] = [
        Code::Ok,
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// The code of a `grpc-status` value; a number that gRPC does not know is `Unknown`.
    pub fn from_number(number: u32) -> Code {
        usize::try_from(number).ok().and_then(|i| Self::ALL.get(i)).copied().unwrap_or(Code::Unknown)
    }

    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name in gRPC's documentation and in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// Whether the OTLP specification lets a client send the same request again. `ResourceExhausted` counts
    /// only with a hint from the server that recovery is possible.
    pub fn is_retryable(self, hinted: bool) -> bool {
        match self {
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss => true,
            Code::ResourceExhausted => hinted,
            _ => false,
        }
    }

    /// Whether the code blames the data rather than the sender or the destination. A batch that is refused with
    /// such a code may hold one bad request among good ones.
    pub fn blames_data(self) -> bool {
        !matches!(
            self,
            Code::Unauthenticated
                | Code::PermissionDenied
                | Code::Unimplemented
                | Code::NotFound
                | Code::FailedPrecondition
        )
    }

    /// The HTTP status of the OTLP/HTTP response.
    pub fn http_status(self) -> StatusCode {
        match self {
            Code::Ok => StatusCode::OK,
            Code::InvalidArgument => StatusCode::BAD_REQUEST,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::Unimplemented => StatusCode::NOT_FOUND,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            code if code.is_retryable(false) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why a TLS handshake failed, classified by who can fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate is signed by an authority that is not trusted here.
    UnknownAuthority,
    /// The certificate has expired or is not valid yet.
    Expired,
    /// The certificate is for another name.
    WrongName,
    /// The certificate is unusable for another reason.
    InvalidCertificate,
    /// The peer aborted the handshake.
    Refused,
    /// The peer requires a client certificate, and none is configured.
    CertificateWanted,
    /// The peer does not speak TLS.
    NoTls,
    /// The peer closes the connection when TLS begins. Servers without TLS do so, but not only they.
    PerhapsNoTls,
    /// The peer requires TLS, and the client does not use it.
    Wanted,
    /// The peer closes the connection before it has sent anything. Servers that expect TLS do so, but not only
    /// they.
    PerhapsWanted,
    Other,
}

impl TlsFault {
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownAuthority => "unknown_authority",
            Self::Expired => "expired",
            Self::WrongName => "wrong_name",
            Self::InvalidCertificate => "invalid_certificate",
            Self::Refused => "refused",
            Self::CertificateWanted => "certificate_wanted",
            Self::NoTls => "no_tls",
            Self::PerhapsNoTls => "perhaps_no_tls",
            Self::Wanted => "wanted",
            Self::PerhapsWanted => "perhaps_wanted",
            Self::Other => "other",
        }
    }
}

/// Why no destination is known, classified by who can fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolverFault {
    /// The resolver did not answer, or cannot be reached.
    NoAnswer,
    /// The resolver does not know the name, or failed.
    Failed,
    /// The resolver refused the query.
    Refused,
    /// The resolver returned no addresses.
    Empty,
}

impl ResolverFault {
    pub fn name(self) -> &'static str {
        match self {
            Self::NoAnswer => "no_answer",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Empty => "empty",
        }
    }
}

/// Why there is no connection to a destination, classified by who can fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFault {
    /// The port is closed, or a firewall rejects the connection.
    Refused,
    /// There is no such host name.
    NameNotFound,
    /// No name server answered for the host name.
    DnsFailed,
    Timeout,
    Unreachable,
}

impl ConnectFault {
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NameNotFound => "name_not_found",
            Self::DnsFailed => "dns_failed",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The status of a destination as it stood on the wire, or the reason why there is no connection, no TLS, or no
/// known address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendStatus {
    Grpc(Code),
    Http(StatusCode),
    /// No response, because there is no connection.
    Connect(ConnectFault),
    /// No response, because the TLS handshake failed.
    Tls(TlsFault),
    /// No response, because no address is known.
    Resolver(ResolverFault),
}

impl fmt::Display for BackendStatus {
    /// `grpc:16`, `http:401`, `connect:refused`, `tls:expired`, `resolver:empty`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendStatus::Grpc(code) => write!(f, "grpc:{}", code.number()),
            BackendStatus::Http(status) => write!(f, "http:{}", status.as_u16()),
            BackendStatus::Connect(fault) => write!(f, "connect:{}", fault.name()),
            BackendStatus::Tls(fault) => write!(f, "tls:{}", fault.name()),
            BackendStatus::Resolver(fault) => write!(f, "resolver:{}", fault.name()),
        }
    }
}
