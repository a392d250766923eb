//! RADIUS (RFC 2865): an Access-Request with a Message-Authenticator (RFC 3579), and its answer.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use md5::{Digest as _, Md5};
use std::io;
use weir_config::snapshot::{RadiusProbe, RadiusReply};
use weir_core::monitor::ProbeOutcome;

use super::answer::BODY_SIZE_MAX;
use super::failure::{Deadline, Failure, Step};
use super::udp::DatagramSettings;

/// Size of the header: code, identifier, length, authenticator.
const HEADER_BYTES: usize = 20;
/// Maximum size of a packet in bytes.
const PACKET_BYTES_MAX: usize = 4_096;
const AUTHENTICATOR_BYTES: usize = 16;
/// Size of the blocks in which a password is hidden.
const BLOCK_BYTES: usize = 16;
/// Size of an attribute's number and length.
const ATTRIBUTE_HEADER_BYTES: usize = 2;

const ACCESS_REQUEST: u8 = 1;
const ACCESS_ACCEPT: u8 = 2;
const ACCESS_REJECT: u8 = 3;
const ACCESS_CHALLENGE: u8 = 11;

const USER_NAME: u8 = 1;
const USER_PASSWORD: u8 = 2;
const NAS_IDENTIFIER: u8 = 32;
const MESSAGE_AUTHENTICATOR: u8 = 80;

/// Sends an Access-Request, and judges the answer.
pub(super) async fn ask(
    way: &DatagramSettings,
    probe: &RadiusProbe,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let mut random = [0; AUTHENTICATOR_BYTES + 1];
    rand::fill(&mut random).map_err(|_| Failure::Local(io::Error::other("no random numbers")))?;
    let [identifier, authenticator @ ..] = random;
    let request = request(probe, identifier, &authenticator);
    let socket = way.send(&request, deadline).await?;
    let mut received = vec![0; BODY_SIZE_MAX];
    let mut is_foreign = false;
    loop {
        let length = match deadline.within(Step::Listening, socket.recv(&mut received)).await {
            // The sender of an earlier answer did not know the secret. The probe waited for a genuine answer, which has not
            // arrived.
            Err(Failure::Timeout(..)) if is_foreign => {
                return Err(refused("an answer that was made with another `secret`"));
            }
            received => received?.map_err(Failure::connecting)?,
        };
        let secret = probe.secret.expose().as_bytes();
        match reply(&received[..length], identifier, &authenticator, secret) {
            Reply::Code(code) => return judge(code, probe.reply),
            Reply::Foreign => is_foreign = true,
            Reply::Other => {}
        }
    }
}

fn judge(code: u8, wanted: RadiusReply) -> Result<ProbeOutcome, Failure> {
    let name = match code {
        ACCESS_ACCEPT => "Access-Accept",
        ACCESS_REJECT => "Access-Reject",
        ACCESS_CHALLENGE => "Access-Challenge",
        _ => {
            return Err(Failure::Malformed(format!(
                "code {code} is no answer to an Access-Request"
            )));
        }
    };
    let passes = match wanted {
        RadiusReply::Accept => code == ACCESS_ACCEPT,
        RadiusReply::Reject => code == ACCESS_REJECT,
        RadiusReply::Any => true,
    };
    if passes { Ok(ProbeOutcome::Passed) } else { Err(refused(name)) }
}

/// An Access-Request. Message-Authenticator comes first, as the drafts against forged answers (BlastRADIUS) require.
fn request(
    probe: &RadiusProbe,
    identifier: u8,
    authenticator: &[u8; AUTHENTICATOR_BYTES],
) -> Vec<u8> {
    let secret = probe.secret.expose().as_bytes();
    let mut packet = vec![ACCESS_REQUEST, identifier, 0, 0];
    packet.extend_from_slice(authenticator);
    put(MESSAGE_AUTHENTICATOR, &[0; AUTHENTICATOR_BYTES], &mut packet);
    put(USER_NAME, probe.credentials.user.as_bytes(), &mut packet);
    let password = probe.credentials.password.expose().as_bytes();
    put(USER_PASSWORD, &hidden(password, secret, authenticator), &mut packet);
    put(NAS_IDENTIFIER, b"weir", &mut packet);
    let length = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&length);
    let signature = hmac_md5(secret, &packet);
    let at = HEADER_BYTES + ATTRIBUTE_HEADER_BYTES;
    packet[at..at + AUTHENTICATOR_BYTES].copy_from_slice(&signature);
    packet
}

/// Appends an attribute. The configuration limits its length.
fn put(number: u8, value: &[u8], packet: &mut Vec<u8>) {
    packet.extend_from_slice(&[number, (ATTRIBUTE_HEADER_BYTES + value.len()) as u8]);
    packet.extend_from_slice(value);
}

/// A password in the hidden form of packets (RFC 2865 section 5.2).
fn hidden(password: &[u8], secret: &[u8], authenticator: &[u8; AUTHENTICATOR_BYTES]) -> Vec<u8> {
    let mut padded = password.to_vec();
    padded.resize(password.len().max(1).next_multiple_of(BLOCK_BYTES), 0);
    let mut before = authenticator.to_vec();
    let mut out = Vec::with_capacity(padded.len());
    for block in padded.chunks(BLOCK_BYTES) {
        let key = Md5::digest([secret, &before].concat());
        before = block.iter().zip(key).map(|(byte, key)| byte ^ key).collect();
        out.extend_from_slice(&before);
    }
    out
}

/// The meaning of a datagram.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    /// The answer, with this code.
    Code(u8),
    /// An answer from a sender without the secret.
    Foreign,
    /// Not an answer to this request.
    Other,
}

fn reply(
    datagram: &[u8],
    identifier: u8,
    request: &[u8; AUTHENTICATOR_BYTES],
    secret: &[u8],
) -> Reply {
    let Some(&[code, found, length_0, length_1]) = datagram.first_chunk::<4>() else {
        return Reply::Other;
    };
    let length = usize::from(u16::from_be_bytes([length_0, length_1]));
    let is_sound = (HEADER_BYTES..=PACKET_BYTES_MAX).contains(&length);
    let Some(packet) = datagram.get(..length).filter(|_| is_sound && found == identifier) else {
        return Reply::Other;
    };
    let (head, attributes) = packet.split_at(HEADER_BYTES);
    let expected = Md5::digest([&head[..4], request, attributes, secret].concat());
    if verify_slices_are_equal(&head[4..], &expected).is_err() {
        return Reply::Foreign;
    }
    match signature_at(attributes) {
        Err(()) => Reply::Other,
        Ok(None) => Reply::Code(code),
        Ok(Some(at)) => {
            let at = HEADER_BYTES + at;
            let mut signed = packet.to_vec();
            signed[4..HEADER_BYTES].copy_from_slice(request);
            signed[at..at + AUTHENTICATOR_BYTES].fill(0);
            let found = &packet[at..at + AUTHENTICATOR_BYTES];
            match verify_slices_are_equal(found, &hmac_md5(secret, &signed)) {
                Ok(()) => Reply::Code(code),
                Err(_) => Reply::Foreign,
            }
        }
    }
}

/// The offset of the Message-Authenticator's value, if there is one. Malformed attributes are an error.
fn signature_at(attributes: &[u8]) -> Result<Option<usize>, ()> {
    let mut at = 0;
    while at < attributes.len() {
        let [number, length] = *attributes[at..].first_chunk::<2>().ok_or(())?;
        let length = usize::from(length);
        if length < ATTRIBUTE_HEADER_BYTES || at + length > attributes.len() {
            return Err(());
        }
        if number == MESSAGE_AUTHENTICATOR {
            let is_sound = length == ATTRIBUTE_HEADER_BYTES + AUTHENTICATOR_BYTES;
            return if is_sound { Ok(Some(at + ATTRIBUTE_HEADER_BYTES)) } else { Err(()) };
        }
        at += length;
    }
    Ok(None)
}

/// HMAC (RFC 2104) with MD5, which aws-lc-rs does not provide.
fn hmac_md5(key: &[u8], text: &[u8]) -> [u8; 16] {
    const BYTES: usize = 64;
    let mut block = [0; BYTES];
    if key.len() > BYTES {
        block[..16].copy_from_slice(&Md5::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let inner = Md5::digest([&padded(0x36)[..], text].concat());
    Md5::digest([&padded(0x5c)[..], &inner].concat()).into()
}

fn refused(reason: &str) -> Failure {
    Failure::Service("RADIUS", reason.to_owned())
}

#[cfg(test)]
mod tests {
    use weir_config::snapshot::{Credentials, Secret};
    use weir_testing::Random;

    use super::*;

    const SECRET: &[u8] = b"xyzzy5461";
    const AUTHENTICATOR: [u8; 16] = [
        0x0f, 0x40, 0x3f, 0x94, 0x73, 0x97, 0x80, 0x57, 0xbd, 0x83, 0xd5, 0xcb, 0x98, 0xf4, 0x22,
        0x7a,
    ];

    fn hex(bytes: &[u8]) -> String {
        data_encoding::HEXLOWER.encode(bytes)
    }

    /// The examples of RFC 2865 section 7.1 and RFC 2202 section 2.
    #[test]
    fn examples_of_the_rfcs() {
        let hidden = hidden(b"arctangent", SECRET, &AUTHENTICATOR);
        assert_eq!(hex(&hidden), "0dbe708d93d413ce3196e43f782a0aee");
        let hmac = |key: &[u8], text: &[u8]| hex(&hmac_md5(key, text));
        assert_eq!(hmac(&[0x0b; 16], b"Hi There"), "9294727a3638bb1c13f48ef8158bfc9d");
        assert_eq!(
            hmac(b"Jefe", b"what do ya want for nothing?"),
            "750c783e6ab0b503eaa86e310a5db738"
        );
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(hmac(&[0xaa; 80], long), "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd");
    }

    #[test]
    fn passwords_of_every_length_are_hidden() {
        for (length, blocks) in [(0, 1), (1, 1), (16, 1), (17, 2), (128, 8)] {
            let hidden = hidden(&vec![b'a'; length], SECRET, &AUTHENTICATOR);
            assert_eq!(hidden.len(), blocks * BLOCK_BYTES, "{length}");
        }
    }

    fn probe() -> RadiusProbe {
        let credentials = Credentials { user: "nemo".into(), password: Secret::new("arctangent") };
        RadiusProbe { credentials, secret: Secret::new("xyzzy5461"), reply: RadiusReply::Accept }
    }

    #[test]
    fn requests() {
        let request = request(&probe(), 7, &AUTHENTICATOR);
        assert_eq!(request[..4], [1, 7, 0, request.len() as u8]);
        assert_eq!(request[HEADER_BYTES..HEADER_BYTES + 2], [80, 18]);
        assert_eq!(signature_at(&request[HEADER_BYTES..]), Ok(Some(2)));
        let rest = &request[HEADER_BYTES + 18..];
        assert_eq!(&rest[..8], b"\x01\x06nemo\x02\x12");
        assert_eq!(&rest[rest.len() - 6..], b"\x20\x06weir");
    }

    /// An answer with these attributes, optionally signed.
    pub(crate) fn answer(
        code: u8,
        identifier: u8,
        request: &[u8],
        attributes: &[u8],
        secret: &[u8],
    ) -> Vec<u8> {
        let length = ((HEADER_BYTES + attributes.len()) as u16).to_be_bytes();
        let head = [code, identifier, length[0], length[1]];
        let mut attributes = attributes.to_vec();
        if let Ok(Some(at)) = signature_at(&attributes) {
            let signature = hmac_md5(secret, &[&head[..], request, &attributes].concat());
            attributes[at..at + 16].copy_from_slice(&signature);
        }
        let authenticator = Md5::digest([&head[..], request, &attributes, secret].concat());
        [&head[..], &authenticator, &attributes].concat()
    }

    #[test]
    fn replies() {
        let of = |datagram: &[u8]| reply(datagram, 7, &AUTHENTICATOR, SECRET);
        let signed = [&[MESSAGE_AUTHENTICATOR, 18][..], &[0; 16]].concat();
        for attributes in [&b""[..], b"\x12\x05hey", &signed] {
            let sound = answer(2, 7, &AUTHENTICATOR, attributes, SECRET);
            assert_eq!(of(&sound), Reply::Code(2), "{attributes:?}");
            assert_eq!(of(&[&sound[..], b"padding"].concat()), Reply::Code(2));
            assert_eq!(of(&answer(2, 8, &AUTHENTICATOR, attributes, SECRET)), Reply::Other);
            assert_eq!(of(&answer(2, 7, &AUTHENTICATOR, attributes, b"other")), Reply::Foreign);
            assert_eq!(of(&answer(2, 7, &[0; 16], attributes, SECRET)), Reply::Foreign);
            for length in 0..sound.len() {
                assert_eq!(of(&sound[..length]), Reply::Other, "{length}");
            }
            let mut random = Random::new(1);
            for _ in 0..2_000 {
                let mut broken = sound.clone();
                let at = random.below(broken.len());
                broken[at] ^= 1 << random.below(8);
                assert_ne!(of(&broken), Reply::Code(2), "{broken:?}");
            }
        }
        // Malformed attributes with a valid signature.
        for attributes in
            [&b"\x12"[..], b"\x12\x00", b"\x12\x01", b"\x12\x09a", b"\x50\x03a", b"\x50\x12a"]
        {
            assert_eq!(of(&answer(2, 7, &AUTHENTICATOR, attributes, SECRET)), Reply::Other);
        }
    }
}
