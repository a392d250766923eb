//! Values of Cookie fields.

/// The first holds a token that the fuzz target of cookies knows.
pub const FIELDS: [&[u8]; 12] = [
    b"lang=en; WEIR=eiwvBCh6L54GqPLplvtM1g; theme=dark",
    b"WEIR=eiwvBCh6L54GqPLplvtM1h",
    b"WEIR=a; WEIR=eiwvBCh6L54GqPLplvtM1g",
    b"a=b;c=d",
    b" a = b ;\tc\t=\td\t",
    b"a=\"b;c=d\"; e",
    b"=a; b=; c",
    b";;; a=b;; ;",
    b"a=b=c==",
    b"a=1; a=2; A=3",
    b"$Version=1; a=b; $Path=/",
    b"a=b, c=d",
];
