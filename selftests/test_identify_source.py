"""IDENTIFY data from files of every usual form, and from what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive.identify_source import read_source
from leadline.errors import Misuse
from selftests.identify_images import hex_bytes, hex_words, image, swapped

IMAGE = image()


@pytest.mark.parametrize(
    "content",
    [
        IMAGE,
        hex_words(IMAGE).encode(),
        hex_words(IMAGE).upper().encode(),
        hex_words(IMAGE).replace("\n", "\r\n").encode(),
        hex_words(IMAGE).replace("\n", " ").encode(),
        b"\n/dev/sda:\n" + hex_words(IMAGE).encode(),
        b"\n/dev/disk/by-path/pci-0000:00:1f.2-ata-1:\n" + hex_words(IMAGE).encode(),
        hex_bytes(IMAGE).encode(),
    ],
    ids=["raw", "words", "capitals", "crlf", "one-line", "hdparm-header", "by-path", "bytes"],
)
def test_every_form_gives_the_same_bytes(content: bytes) -> None:
    assert read_source(content, "dump") == IMAGE


@pytest.mark.parametrize("words", [{}, {75: 0x0007}, {83: 0x4408, 84: 0x6163}])
def test_swapped_words_are_known_by_the_signature(words: dict[int, int]) -> None:
    data = image(words=words)
    assert read_source(swapped(data), "dump") == data
    assert read_source(hex_words(swapped(data)).encode(), "dump") == data


def test_swapped_words_without_a_signature_are_known_by_their_fixed_bits() -> None:
    data = image(signed=False)
    assert read_source(swapped(data), "dump") == data


def test_a_damaged_checksum_does_not_turn_the_bytes_round() -> None:
    data = bytearray(IMAGE)
    data[40] ^= 1
    assert read_source(bytes(data), "dump") == data
    assert read_source(hex_words(bytes(data)).encode(), "dump") == data


def test_a_signature_is_proof_only_with_a_sum_that_holds() -> None:
    data = image(words={255: 0xA501}, signed=False)
    assert sum(data) % 256 != 0
    assert read_source(data, "dump") == data


def test_fixed_bits_that_are_right_both_ways_are_no_proof() -> None:
    data = image(words={83: 0x4444, 84: 0x4141, 87: 0x4141}, signed=False)
    assert read_source(data, "dump") == data


def test_words_are_values_and_bytes_are_in_the_order_of_the_wire() -> None:
    data = image(words={83: 0, 84: 0, 87: 0}, signed=False)  # nothing to tell the order by
    assert read_source(hex_words(data).encode(), "dump") == data
    assert read_source(hex_bytes(data).encode(), "dump") == data


def test_without_proof_the_bytes_stay_as_they_are() -> None:
    data = image(words={83: 0, 84: 0, 87: 0}, signed=False)
    assert read_source(data, "dump") == data
    assert read_source(swapped(data), "dump") == swapped(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"dump: the file is empty; give 512 raw bytes"),
        (b" \n\n", r"dump: the file is empty"),
        (b"/dev/sda:\n", r"dump: no hex words"),
        (IMAGE[:511], r"dump: 511 raw bytes where IDENTIFY data is 512"),
        (IMAGE + b"\n", r"dump: 513 raw bytes"),
        (hex_words(IMAGE)[:-5].encode(), r"dump:32:31: the text ends after 255 hex words.* 256"),
        (hex_words(IMAGE).encode() + b"0000", r"dump:33:1: the text ends after 257 hex words"),
        (hex_bytes(IMAGE)[:-4].encode(), r"dump:32:43: the text ends after 511 hex bytes.* 512"),
        (hex_words(IMAGE)[:511].encode(), r"dump:\d+:\d+: "),
        (hex_words(IMAGE)[:512].encode(), r"dump:\d+:\d+: '[0-9a-f]+' stands|dump:13:"),
        (hex_words(IMAGE).replace("c837", "c8g7").encode(), r"dump:1:11: 'c8g7' is not a hex word"),
        (hex_words(IMAGE).replace("c837", "c83").encode(), r"dump:1:11: 'c83' is not a hex word"),
        (hex_words(IMAGE).replace("c837", "c8").encode(), r"dump:1:11: 'c8' stands among .* 4 dig"),
        (b"model: Samsung", r"dump:1:1: 'model:' is not a hex word"),
    ],
)
def test_what_is_no_dump_is_refused_with_its_place(content: bytes, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        read_source(content, "dump")


@given(st.binary(max_size=3000) | st.text("0123456789abcdefxyz \n", max_size=3000).map(str.encode))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    try:
        data = read_source(content, "dump")
    except Misuse as error:
        assert str(error).startswith("dump:")
        assert str(error).isprintable()
    else:
        assert len(data) == 512


@given(st.binary(min_size=512, max_size=512))
def test_text_and_raw_bytes_agree(data: bytes) -> None:
    raw = read_source(data + b"", "dump") if not data.isascii() else None
    assert read_source(hex_words(data).encode(), "dump") in (data, swapped(data))
    assert raw in (None, read_source(hex_words(data).encode(), "dump"))
