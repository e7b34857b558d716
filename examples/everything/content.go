package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// addContent adds a tool for each kind of content that a result may have, and one that fails.
func (e *Everything) addContent() {
	picture := &mcp.ImageContent{Data: dot(), MIMEType: "image/png"}
	for _, t := range []struct {
		name, description string
		content           []mcp.Content
	}{
		{"test_simple_text", "Return a text.", []mcp.Content{&mcp.TextContent{Text: "A plain text."}}},
		{"test_image_content", "Return an image.", []mcp.Content{picture}},
		{"test_audio_content", "Return a sound.", []mcp.Content{&mcp.AudioContent{Data: silence(), MIMEType: "audio/wav"}}},
		{"test_embedded_resource", "Return a resource with its content.", []mcp.Content{
			embedded("test://embedded-resource", "text/plain", "The text of a resource that came with the result."),
		}},
		{"test_multiple_content_types", "Return a text, an image and a resource.", []mcp.Content{
			&mcp.TextContent{Text: "A dot, and what there is to say of it:"},
			picture,
			embedded("test://mixed-content-resource", "application/json", `{"width":1,"height":1}`),
		}},
	} {
		e.add(t.name, t.description, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: t.content}, nil
		})
	}
	e.add("test_error_handling", "Fail.", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, tools.Fail("this tool always fails")
	})
}

func embedded(uri, mimeType, text string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mimeType, Text: text}}
}

// dot is a PNG of one red pixel.
func dot() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}

// silence is a WAV file of a hundredth of a second: 80 samples of 8 bits, 8,000 a second.
func silence() []byte {
	const rate, samples = 8000, 80
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+samples) // what follows
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)   // the length of this part
	b = binary.LittleEndian.AppendUint16(b, 1)    // PCM
	b = binary.LittleEndian.AppendUint16(b, 1)    // channels
	b = binary.LittleEndian.AppendUint32(b, rate) // samples a second
	b = binary.LittleEndian.AppendUint32(b, rate) // bytes a second
	b = binary.LittleEndian.AppendUint16(b, 1)    // bytes a sample
	b = binary.LittleEndian.AppendUint16(b, 8)    // bits a sample
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, samples)
	return append(b, bytes.Repeat([]byte{128}, samples)...)
}
