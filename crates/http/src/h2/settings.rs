//! SETTINGS (RFC 9113 section 6.5).

use super::error::Misbehaviour;
use super::frame::{
    FRAME_SIZE_DEFAULT, FRAME_SIZE_MAX, FrameHeader, WINDOW_SIZE_MAX, kind, read_u32,
};
use super::hpack::TABLE_SIZE_DEFAULT;
use super::limits::{CONNECTION_WINDOW_DEFAULT, Limits};

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 8441 section 3.
const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
/// RFC 9218 section 2.1.
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// The peer's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerSettings {
    /// Maximum size of our encoder's table.
    pub header_table_size: u32,
    /// Maximum number of our open streams.
    pub streams_max: u32,
    /// The initial send window of our streams.
    pub stream_window_size: u32,
    /// Maximum payload of our frames.
    pub frame_size_max: u32,
    /// Maximum size of our header lists, if the peer has set one.
    pub header_list_size_max: Option<u32>,
    /// Whether the peer supports extended CONNECT (RFC 8441).
    pub extended_connect: bool,
    /// Whether the peer uses only the priorities of RFC 9218.
    pub no_rfc7540_priorities: bool,
}

impl PeerSettings {
    /// The defaults, until the peer sends its settings.
    pub(super) fn new() -> Self {
        Self {
            header_table_size: TABLE_SIZE_DEFAULT,
            streams_max: u32::MAX,
            stream_window_size: CONNECTION_WINDOW_DEFAULT,
            frame_size_max: FRAME_SIZE_DEFAULT,
            header_list_size_max: None,
            extended_connect: false,
            no_rfc7540_priorities: false,
        }
    }

    /// Reads a SETTINGS payload; `from_server`: the peer is a server. Unknown settings are ignored.
    pub(super) fn take_in(
        &mut self,
        payload: &[u8],
        from_server: bool,
    ) -> Result<(), Misbehaviour> {
        for entry in payload.chunks_exact(6) {
            let value = read_u32(&entry[2..]);
            let is_switch = value <= 1;
            match u16::from_be_bytes([entry[0], entry[1]]) {
                HEADER_TABLE_SIZE => self.header_table_size = value,
                // Section 6.5.2: a server must not enable push, and may only send the value 0.
                ENABLE_PUSH if !is_switch || (from_server && value != 0) => {
                    return Err(Misbehaviour::SettingsValue);
                }
                MAX_CONCURRENT_STREAMS => self.streams_max = value,
                INITIAL_WINDOW_SIZE if value > WINDOW_SIZE_MAX => {
                    return Err(Misbehaviour::SettingsWindow);
                }
                INITIAL_WINDOW_SIZE => self.stream_window_size = value,
                MAX_FRAME_SIZE if !(FRAME_SIZE_DEFAULT..=FRAME_SIZE_MAX).contains(&value) => {
                    return Err(Misbehaviour::SettingsValue);
                }
                MAX_FRAME_SIZE => self.frame_size_max = value,
                MAX_HEADER_LIST_SIZE => self.header_list_size_max = Some(value),
                // RFC 8441 section 3: once enabled, it cannot be disabled.
                ENABLE_CONNECT_PROTOCOL if !is_switch || (value == 0 && self.extended_connect) => {
                    return Err(Misbehaviour::SettingsValue);
                }
                ENABLE_CONNECT_PROTOCOL => self.extended_connect = value == 1,
                NO_RFC7540_PRIORITIES if !is_switch => return Err(Misbehaviour::SettingsValue),
                NO_RFC7540_PRIORITIES => self.no_rfc7540_priorities = value == 1,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Appends the first SETTINGS frame of a connection.
pub(super) fn write_initial(limits: &Limits, is_server: bool, out: &mut Vec<u8>) {
    let mut entries = [(0, 0); 7];
    let mut count = 0;
    let mut add = |id: u16, value: u32| {
        entries[count] = (id, value);
        count += 1;
    };
    if limits.decoder_table_size != TABLE_SIZE_DEFAULT {
        add(HEADER_TABLE_SIZE, limits.decoder_table_size);
    }
    if is_server {
        add(MAX_CONCURRENT_STREAMS, limits.streams_max);
        if limits.extended_connect {
            add(ENABLE_CONNECT_PROTOCOL, 1);
        }
    } else {
        add(ENABLE_PUSH, 0);
    }
    add(INITIAL_WINDOW_SIZE, limits.stream_window_size);
    if limits.frame_size_max != FRAME_SIZE_DEFAULT {
        add(MAX_FRAME_SIZE, limits.frame_size_max);
    }
    add(MAX_HEADER_LIST_SIZE, limits.header_list_size_max);
    add(NO_RFC7540_PRIORITIES, 1);
    write(&entries[..count], out);
}

/// Appends a SETTINGS frame with a new initial window of streams.
pub(super) fn write_stream_window(size: u32, out: &mut Vec<u8>) {
    write(&[(INITIAL_WINDOW_SIZE, size)], out);
}

fn write(entries: &[(u16, u32)], out: &mut Vec<u8>) {
    let length = 6 * entries.len() as u32;
    FrameHeader { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (id, value) in entries {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_in(id: u16, value: u32, from_server: bool) -> Result<PeerSettings, Misbehaviour> {
        let mut settings = PeerSettings::new();
        let payload = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        settings.take_in(&payload, from_server).map(|()| settings)
    }

    #[test]
    fn values_that_settings_may_have() {
        for (id, value, from_server, expected) in [
            (HEADER_TABLE_SIZE, u32::MAX, false, Ok(())),
            (ENABLE_PUSH, 0, false, Ok(())),
            (ENABLE_PUSH, 1, false, Ok(())),
            (ENABLE_PUSH, 2, false, Err(Misbehaviour::SettingsValue)),
            (ENABLE_PUSH, 0, true, Ok(())),
            (ENABLE_PUSH, 1, true, Err(Misbehaviour::SettingsValue)),
            (MAX_CONCURRENT_STREAMS, 0, false, Ok(())),
            (INITIAL_WINDOW_SIZE, 0x7fff_ffff, false, Ok(())),
            (INITIAL_WINDOW_SIZE, 0x8000_0000, false, Err(Misbehaviour::SettingsWindow)),
            (MAX_FRAME_SIZE, 16_383, false, Err(Misbehaviour::SettingsValue)),
            (MAX_FRAME_SIZE, 16_384, false, Ok(())),
            (MAX_FRAME_SIZE, 16_777_215, false, Ok(())),
            (MAX_FRAME_SIZE, 16_777_216, false, Err(Misbehaviour::SettingsValue)),
            (MAX_HEADER_LIST_SIZE, 0, false, Ok(())),
            (ENABLE_CONNECT_PROTOCOL, 1, true, Ok(())),
            (ENABLE_CONNECT_PROTOCOL, 2, true, Err(Misbehaviour::SettingsValue)),
            (NO_RFC7540_PRIORITIES, 2, false, Err(Misbehaviour::SettingsValue)),
            (0xff, u32::MAX, false, Ok(())),
        ] {
            assert_eq!(taken_in(id, value, from_server).map(|_| ()), expected, "{id} = {value}");
        }
        let mut settings = taken_in(ENABLE_CONNECT_PROTOCOL, 1, true).expect("sound");
        let taken_back = [0, 8, 0, 0, 0, 0];
        assert_eq!(settings.take_in(&taken_back, true), Err(Misbehaviour::SettingsValue));
    }

    #[test]
    fn what_is_written_is_understood() {
        let limits = Limits {
            streams_max: 7,
            decoder_table_size: 0,
            frame_size_max: 20_000,
            ..Limits::DEFAULT
        };
        for is_server in [true, false] {
            let mut out = Vec::new();
            write_initial(&limits, is_server, &mut out);
            let mut settings = PeerSettings::new();
            assert_eq!(settings.take_in(&out[9..], is_server), Ok(()));
            let expected = PeerSettings {
                header_table_size: 0,
                streams_max: if is_server { 7 } else { u32::MAX },
                stream_window_size: 256 * 1024,
                frame_size_max: 20_000,
                header_list_size_max: Some(32 * 1024),
                extended_connect: is_server,
                no_rfc7540_priorities: true,
            };
            assert_eq!(settings, expected);
        }
    }
}
