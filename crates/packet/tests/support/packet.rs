//! Packets from their fields: an independent model of the programs' output. Nothing here is
//! incremental.

use std::net::IpAddr;

/// Ethernet addresses: receiver, then sender.
pub type Hardware = [u8; 12];

/// The payload of IP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    Tcp {
        ports: (u16, u16),
        sequence: u32,
        acknowledged: u32,
        flags: u8,
        options: Vec<u8>,
    },
    /// `has_checksum`: whether the sender has computed a checksum.
    Udp {
        ports: (u16, u16),
        has_checksum: bool,
    },
    /// Type, code, and the second word.
    Icmp {
        kind: u8,
        code: u8,
        word: u32,
    },
    /// A protocol by its number.
    Other(u8),
}

/// A packet by its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    pub hardware: Hardware,
    pub tag: Option<u16>,
    pub source: IpAddr,
    pub target: IpAddr,
    pub ttl: u8,
    pub tos: u8,
    pub id: u32,
    /// Offset in bytes, and whether more follow.
    pub fragment: Option<(u16, bool)>,
    /// "Don't fragment".
    pub df: bool,
    /// Of IPv4, a multiple of four bytes; of IPv6 whole extension headers, whose first is of this type.
    pub options: Vec<u8>,
    pub extension: u8,
    pub carried: Carried,
    pub payload: Vec<u8>,
    /// Of a fragment: the checksum of the whole, which the first contains.
    pub checksum_of_whole: Option<u16>,
}

impl Packet {
    pub fn new(source: &str, target: &str, carried: Carried) -> Self {
        Self {
            hardware: super::bed::ADC_IN,
            tag: None,
            source: source.parse().expect("an address"),
            target: target.parse().expect("an address"),
            ttl: 64,
            tos: 0,
            id: 1,
            fragment: None,
            df: true,
            options: Vec::new(),
            extension: 0,
            carried,
            payload: b"weirgate".to_vec(),
            checksum_of_whole: None,
        }
    }

    pub fn tcp(source: &str, source_port: u16, target: &str, target_port: u16, flags: u8) -> Self {
        let options = Vec::new();
        let carried = Carried::Tcp {
            ports: (source_port, target_port),
            sequence: 7,
            acknowledged: 9,
            flags,
            options,
        };
        Self::new(source, target, carried)
    }

    pub fn udp(source: &str, source_port: u16, target: &str, target_port: u16) -> Self {
        Self::new(
            source,
            target,
            Carried::Udp { ports: (source_port, target_port), has_checksum: true },
        )
    }

    fn protocol(&self) -> u8 {
        match self.carried {
            Carried::Tcp { .. } => 6,
            Carried::Udp { .. } => 17,
            Carried::Icmp { .. } if self.source.is_ipv4() => 1,
            Carried::Icmp { .. } => 58,
            Carried::Other(number) => number,
        }
    }

    pub fn ports(&mut self) -> &mut (u16, u16) {
        match &mut self.carried {
            Carried::Tcp { ports, .. } | Carried::Udp { ports, .. } => ports,
            _ => panic!("it has no ports"),
        }
    }

    /// From the transport's header on, with its checksum.
    pub fn segment(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let checksum_at = match &self.carried {
            Carried::Tcp { ports, sequence, acknowledged, flags, options } => {
                bytes.extend_from_slice(&ports.0.to_be_bytes());
                bytes.extend_from_slice(&ports.1.to_be_bytes());
                bytes.extend_from_slice(&sequence.to_be_bytes());
                bytes.extend_from_slice(&acknowledged.to_be_bytes());
                bytes.extend_from_slice(&[
                    ((20 + options.len()) as u8 / 4) << 4,
                    *flags,
                    0x20,
                    0,
                    0,
                    0,
                    0,
                    0,
                ]);
                bytes.extend_from_slice(options);
                Some(16)
            }
            Carried::Udp { ports, has_checksum } => {
                bytes.extend_from_slice(&ports.0.to_be_bytes());
                bytes.extend_from_slice(&ports.1.to_be_bytes());
                bytes.extend_from_slice(&(8 + self.payload.len() as u16).to_be_bytes());
                bytes.extend_from_slice(&[0, 0]);
                has_checksum.then_some(6)
            }
            Carried::Icmp { kind, code, word } => {
                bytes.extend_from_slice(&[*kind, *code, 0, 0]);
                bytes.extend_from_slice(&word.to_be_bytes());
                Some(2)
            }
            Carried::Other(_) => None,
        };
        bytes.extend_from_slice(&self.payload);
        if let Some(at) = checksum_at {
            let has_pseudo =
                !(self.source.is_ipv4() && matches!(self.carried, Carried::Icmp { .. }));
            let mut sum =
                self.checksum_of_whole.unwrap_or_else(|| self.checksum(&bytes, has_pseudo));
            if sum == 0 && matches!(self.carried, Carried::Udp { .. }) {
                sum = 0xffff;
            }
            bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    fn checksum(&self, segment: &[u8], has_pseudo: bool) -> u16 {
        let mut all = Vec::new();
        if has_pseudo {
            all.extend_from_slice(&octets(self.source));
            all.extend_from_slice(&octets(self.target));
            all.extend_from_slice(&(segment.len() as u32).to_be_bytes());
            all.extend_from_slice(&[0, 0, 0, self.protocol()]);
        }
        all.extend_from_slice(segment);
        internet_checksum(&all)
    }

    /// From the IP header on, of this segment or part of one.
    fn network(&self, segment: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.source.is_ipv4() {
            let header = 20 + self.options.len();
            bytes.extend_from_slice(&[0x40 | (header as u8 / 4), self.tos]);
            bytes.extend_from_slice(&((header + segment.len()) as u16).to_be_bytes());
            bytes.extend_from_slice(&(self.id as u16).to_be_bytes());
            let mut fragment = if self.df { 0x4000 } else { 0 };
            if let Some((offset, more)) = self.fragment {
                fragment |= (offset / 8) | if more { 0x2000 } else { 0 };
            }
            bytes.extend_from_slice(&fragment.to_be_bytes());
            bytes.extend_from_slice(&[self.ttl, self.protocol(), 0, 0]);
            bytes.extend_from_slice(&octets(self.source));
            bytes.extend_from_slice(&octets(self.target));
            bytes.extend_from_slice(&self.options);
            let sum = internet_checksum(&bytes);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            let mut extensions = self.options.clone();
            let mut next = if extensions.is_empty() { self.protocol() } else { self.extension };
            if let Some((offset, more)) = self.fragment {
                let mut fragment = vec![next, 0];
                fragment.extend_from_slice(&(offset | u16::from(more)).to_be_bytes());
                fragment.extend_from_slice(&self.id.to_be_bytes());
                extensions = [fragment, extensions].concat();
                next = 44;
            }
            bytes.extend_from_slice(&[0x60 | (self.tos >> 4), self.tos << 4 | 3, 1, 2]);
            bytes.extend_from_slice(&((extensions.len() + segment.len()) as u16).to_be_bytes());
            bytes.extend_from_slice(&[next, self.ttl]);
            bytes.extend_from_slice(&octets(self.source));
            bytes.extend_from_slice(&octets(self.target));
            bytes.extend_from_slice(&extensions);
        }
        bytes.extend_from_slice(segment);
        bytes
    }

    /// From the IP header on.
    pub fn datagram(&self) -> Vec<u8> {
        self.network(&self.segment())
    }

    /// The whole frame.
    pub fn bytes(&self) -> Vec<u8> {
        self.frame(self.datagram())
    }

    fn frame(&self, datagram: Vec<u8>) -> Vec<u8> {
        let mut bytes = self.hardware.to_vec();
        if let Some(tag) = self.tag {
            bytes.extend_from_slice(&[0x81, 0]);
            bytes.extend_from_slice(&tag.to_be_bytes());
        }
        bytes.extend_from_slice(if self.source.is_ipv4() { &[8, 0] } else { &[0x86, 0xdd] });
        bytes.extend_from_slice(&datagram);
        bytes
    }

    /// The frames of two fragments; the second begins at this offset of the segment, a multiple of eight.
    pub fn fragments(&self, at: usize) -> [Vec<u8>; 2] {
        let segment = self.segment();
        let part = |fragment, bytes: &[u8]| {
            let part = Self { fragment: Some(fragment), df: false, ..self.clone() };
            part.frame(part.network(bytes))
        };
        [part((0, true), &segment[..at]), part((at as u16, false), &segment[at..])]
    }
}

pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// RFC 1071.
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
